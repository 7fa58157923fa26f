// The thread workloads on goroutines, one processor (GOMAXPROCS=1): the baseline of every ratio.
//
// `PROG BENCH [ARGS...]` runs one workload, checks its result and prints one JSON line;
// what each workload measures is written in bench/README.md.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

type fields map[string]any

func main() {
	runtime.GOMAXPROCS(1)
	if len(os.Args) < 2 {
		usage()
	}
	switch os.Args[1] {
	case "spawn_join":
		spawnJoin(argument(2, 1_000_000))
	case "yield":
		yield(argument(2, 3_000_000))
	case "rendezvous":
		rendezvous(argument(2, 1_000_000))
	case "sieve":
		sieve(argument(2, 700))
	case "semaphores":
		semaphores(argument(2, 2), argument(3, 2), argument(4, 500))
	case "mutex":
		mutex(argument(2, 20_000_000))
	case "parked":
		parked(argument(2, 100_000))
	case "blocked":
		blocked(argument(2, 1000))
	case "page_fault":
		pageFault(argument(2, 200))
	case "fill_late":
		fillLate(3)
	case "preempted":
		preempted(argument(2, 100))
	case "urgent":
		emit(fields{"bench": "urgent", "unsupported": "goroutines have no priorities"})
	case "sieve_messages":
		emit(fields{"bench": "sieve_messages", "unsupported": "its sieve passes messages already"})
	case "address_space":
		emit(fields{"bench": "address_space", "unsupported": "only the kernel makes address spaces"})
	case "priorities", "priorities_alone", "priorities_plain":
		// No goroutine passes priorities to the host, and the rival is a plain loop in any case.
		priorities(os.Args[1], argument(2, 3000))
	case "priorities_half":
		priorityHalf(int64(argument(3, 1)), int64(argument(4, 1)))
	case "version":
		fmt.Println(strings.Replace(runtime.Version(), "go", "Go ", 1))
	default:
		usage()
	}
}

// A thread here is spawned, counts itself and is joined, one after the other.
func spawnJoin(iters int) {
	ran := 0
	round := func(n int) {
		var done sync.WaitGroup
		for range make([]struct{}, n) {
			done.Add(1)
			go func() { ran++; done.Done() }()
			done.Wait()
		}
	}
	round(iters / 10)
	ran = 0
	elapsed := timed(func() { round(iters) })
	check(ran == iters, "%d of %d threads ran", ran, iters)
	emit(fields{"bench": "spawn_join", "value": per(elapsed, iters), "unit": "ns",
		"check": fmt.Sprintf("%d threads ran", ran)})
}

// Two threads yield to each other; a turn is counted whenever the other one ran in between.
func yield(iters int) {
	last, turns := -1, 0
	round := func(n int) {
		var done sync.WaitGroup
		done.Add(2)
		for me := 0; me < 2; me++ {
			go func(me int) {
				for i := 0; i < n; i++ {
					if last != me {
						turns++
						last = me
					}
					runtime.Gosched()
				}
				done.Done()
			}(me)
		}
		done.Wait()
	}
	round(iters / 10)
	last, turns = -1, 0
	elapsed := timed(func() { round(iters) })
	check(turns >= iters, "only %d of %d yields switched", turns, 2*iters)
	emit(fields{"bench": "yield", "value": per(elapsed, 2*iters), "unit": "ns",
		"turns_per_yield": float64(turns) / float64(2*iters),
		"check":           fmt.Sprintf("%d turns", turns)})
}

func rendezvous(iters int) {
	there, back := make(chan int), make(chan int)
	go func() {
		for n := range there {
			back <- n + 1
		}
		close(back)
	}()
	n := 0
	round := func(count int) {
		for i := 0; i < count; i++ {
			there <- n
			n = <-back
		}
	}
	round(iters / 10)
	n = 0
	elapsed := timed(func() { round(iters) })
	close(there)
	check(n == iters, "the echo counted to %d, not %d", n, iters)
	emit(fields{"bench": "rendezvous", "value": per(elapsed, iters), "unit": "ns",
		"check": fmt.Sprintf("%d round trips", n)})
}

// Lock and unlock without contention: for the bench of locks.
func mutex(iters int) {
	var lock sync.Mutex
	held := 0
	round := func(n int) {
		for i := 0; i < n; i++ {
			lock.Lock()
			held++
			lock.Unlock()
		}
	}
	round(iters / 10)
	held = 0
	elapsed := timed(func() { round(iters) })
	check(held == iters, "held %d times, not %d", held, iters)
	emit(fields{"bench": "mutex", "value": per(elapsed, iters), "unit": "ns",
		"check": fmt.Sprintf("held %d times", held)})
}

// Paper 1, table 4: one source, one filter a prime; the caller receives the primes. 0 ends a stream.
func sieve(limit int) {
	var threads, primes, messages int
	var largest int
	run := func() {
		threads, primes, messages = 0, 0, 0
		send := func(to chan<- int, n int) { messages++; to <- n }
		from := make(chan int)
		threads++
		go func(to chan<- int) {
			for n := 2; n <= limit; n++ {
				send(to, n)
			}
			send(to, 0)
		}(from)
		for {
			prime := <-from
			if prime == 0 {
				return
			}
			primes, largest = primes+1, prime
			to := make(chan int)
			threads++
			go func(from <-chan int, to chan<- int) {
				for {
					n := <-from
					if n == 0 || n%prime != 0 {
						send(to, n)
					}
					if n == 0 {
						return
					}
				}
			}(from, to)
			from = to
		}
	}
	run()
	elapsed := timed(run)
	wantPrimes, wantMessages := sieveExpected(limit)
	check(primes == wantPrimes && messages == wantMessages && threads == primes+1,
		"%d primes, %d messages; expected %d and %d", primes, messages, wantPrimes, wantMessages)
	emit(fields{"bench": "sieve", "args": []int{limit}, "value": elapsed.Seconds() * 1e3, "unit": "ms",
		"primes": primes, "largest": largest, "threads": threads, "messages": messages,
		"check": fmt.Sprintf("%d threads, %d messages", threads, messages)})
}

// sieveExpected counts by trial division: a number passes one channel a prime up to its smallest
// factor, and the end mark passes every channel.
func sieveExpected(limit int) (int, int) {
	var primes []int
	messages := 0
	for n := 2; n <= limit; n++ {
		k := 0
		for k < len(primes) && n%primes[k] != 0 {
			k++
		}
		messages += k + 1
		if k == len(primes) {
			primes = append(primes, n)
		}
	}
	return len(primes), messages + len(primes) + 1
}

// A counting semaphore as Go programs write it: a buffered channel.
type semaphore chan struct{}

func newSemaphore(count int) semaphore {
	s := make(semaphore, slots)
	for i := 0; i < count; i++ {
		s <- struct{}{}
	}
	return s
}
func (s semaphore) acquire() { <-s }
func (s semaphore) release() { s <- struct{}{} }

const slots = 128

// Paper 0, figure 13: a bounded buffer; two semaphores count its slots, a mutex guards it.
func semaphores(producers, consumers, millis int) {
	empty, full := newSemaphore(slots), newSemaphore(0)
	var guard sync.Mutex
	var ring [slots]uint64
	var head, tail uint64
	put := func(item uint64) {
		empty.acquire()
		guard.Lock()
		ring[head%slots] = item
		head++
		guard.Unlock()
		full.release()
	}
	get := func() uint64 {
		full.acquire()
		guard.Lock()
		item := ring[tail%slots]
		tail++
		guard.Unlock()
		empty.release()
		return item
	}
	var stop atomic.Bool
	var produced, consumed, items atomic.Uint64
	var makers, takers sync.WaitGroup
	start := time.Now()
	for p := 0; p < producers; p++ {
		makers.Add(1)
		go func(item uint64) {
			var sum uint64
			for n := 0; !stop.Load(); n++ {
				put(item)
				sum += item
				item += uint64(producers)
				if n%64 == 63 && time.Since(start) >= time.Duration(millis)*time.Millisecond {
					stop.Store(true)
				}
			}
			produced.Add(sum)
			makers.Done()
		}(uint64(p + 1))
	}
	for c := 0; c < consumers; c++ {
		takers.Add(1)
		go func() {
			var sum, count uint64
			for {
				item := get()
				if item == 0 {
					break
				}
				sum += item
				count++
			}
			consumed.Add(sum)
			items.Add(count)
			takers.Done()
		}()
	}
	makers.Wait()
	for c := 0; c < consumers; c++ {
		put(0)
	}
	takers.Wait()
	elapsed := time.Since(start)
	check(produced.Load() == consumed.Load(), "produced %d, consumed %d", produced.Load(), consumed.Load())
	emit(fields{"bench": "semaphores", "args": []int{producers, consumers},
		"value": float64(items.Load()) / elapsed.Seconds() / 1e6, "unit": "M items/s",
		"check": fmt.Sprintf("%d items", items.Load())})
}

func parked(count int) {
	gate := make(chan struct{})
	var ready, done sync.WaitGroup
	before := memoryBytes()
	for i := 0; i < count; i++ {
		ready.Add(1)
		done.Add(1)
		go func() { ready.Done(); <-gate; done.Done() }()
	}
	ready.Wait()
	after := memoryBytes()
	close(gate)
	done.Wait()
	emit(fields{"bench": "parked", "args": []int{count}, "value": float64(after-before) / float64(count),
		"unit": "B", "total_bytes": after - before, "check": fmt.Sprintf("%d threads released", count)})
}

// Every thread sleeps in the kernel by a raw system call, beside one that ticks each millisecond.
func blocked(count int) {
	var stop atomic.Bool
	var done sync.WaitGroup
	var ticks int
	var gap time.Duration
	ticked := make(chan struct{})
	started := make(chan struct{})
	go func() {
		last := time.Now()
		close(started)
		for !stop.Load() {
			time.Sleep(time.Millisecond)
			now := time.Now()
			if now.Sub(last) > gap {
				gap = now.Sub(last)
			}
			last = now
			ticks++
		}
		close(ticked)
	}()
	<-started
	elapsed := timed(func() {
		for i := 0; i < count; i++ {
			done.Add(1)
			go func() { nanosleep(10_000_000); done.Done() }()
		}
		done.Wait()
	})
	stop.Store(true)
	<-ticked
	emit(fields{"bench": "blocked", "args": []int{count}, "value": elapsed.Seconds() * 1e3, "unit": "ms",
		"gap_ms": gap.Seconds() * 1e3, "ticks": ticks, "check": fmt.Sprintf("%d sleepers joined", count)})
}

const (
	pageBytes      = 4096
	sysUserfaultfd = 323
	userModeOnly   = 1
	uffdApi        = 0xaa
	ioctlApi       = 0xc018aa3f
	ioctlRegister  = 0xc020aa00
	ioctlZeropage  = 0xc020aa04
)

func ioctl(descriptor, request uintptr, words []uint64) bool {
	_, _, failed := syscall.RawSyscall(syscall.SYS_IOCTL, descriptor, request, uintptr(unsafe.Pointer(&words[0])))
	return failed == 0
}

// A page that arrives late, beside a thread that yields: see report/src/stall.rs. Another process
// fills it, because a goroutine would have to wait for the processor that the fault occupies.
func pageFault(pages int) {
	descriptor, _, failed := syscall.Syscall(sysUserfaultfd, syscall.O_CLOEXEC|userModeOnly, 0, 0)
	if failed != 0 {
		emit(fields{"bench": "page_fault", "unsupported": "userfaultfd is not permitted here"})
		return
	}
	memory, err := syscall.Mmap(-1, 0, pages*pageBytes, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON)
	check(err == nil, "%v", err)
	syscall.Madvise(memory, syscall.MADV_NOHUGEPAGE)
	base := uint64(uintptr(unsafe.Pointer(&memory[0])))
	check(ioctl(descriptor, ioctlApi, []uint64{uffdApi, 0, 0}) &&
		ioctl(descriptor, ioctlRegister, []uint64{base, uint64(len(memory)), 1, 0}), "userfaultfd does not serve")
	filler := exec.Command("/proc/self/exe", "fill_late")
	filler.ExtraFiles = []*os.File{os.NewFile(descriptor, "userfaultfd")}
	check(filler.Start() == nil, "no process")
	var began atomic.Int64
	samples := make([]float64, 0, pages)
	since := time.Now()
	seen := make(chan struct{})
	go func() {
		for len(samples) < pages {
			if at := began.Load(); at != 0 {
				samples = append(samples, float64(time.Since(since).Nanoseconds()-at)/1e3)
				began.Store(0)
			}
			runtime.Gosched()
		}
		close(seen)
	}()
	sum := byte(0)
	for page := 0; page < pages; page++ {
		began.Store(time.Since(since).Nanoseconds())
		sum += memory[page*pageBytes]
		for began.Load() != 0 {
			runtime.Gosched()
		}
	}
	<-seen
	filler.Process.Kill()
	filler.Wait()
	check(sum == 0, "a page that came is zero")
	sort.Float64s(samples)
	emit(fields{"bench": "page_fault", "args": []int{pages}, "value": samples[(pages-1)/2], "unit": "us",
		"p99_us": samples[(pages-1)*99/100], "check": fmt.Sprintf("%d faults", pages)})
}

// Fills each requested page after two milliseconds.
func fillLate(descriptor uintptr) {
	message := make([]byte, 32)
	for {
		count, _ := syscall.Read(int(descriptor), message)
		if count != len(message) {
			return
		}
		time.Sleep(2 * time.Millisecond)
		page := *(*uint64)(unsafe.Pointer(&message[16])) &^ (pageBytes - 1)
		check(ioctl(descriptor, ioctlZeropage, []uint64{page, pageBytes, 0, 0}), "a page cannot be filled")
	}
}

// A thread that never yields for a second, beside one that sleeps 5 ms at a time.
func preempted(samples int) {
	var stop atomic.Bool
	var spinning sync.WaitGroup
	spinning.Add(1)
	start := time.Now()
	go func() {
		for n := 0; !stop.Load(); n++ {
			if n%1024 == 0 && time.Since(start) >= time.Second {
				break
			}
		}
		stop.Store(true)
		spinning.Done()
	}()
	var overshoot []float64
	for len(overshoot) < samples && !stop.Load() {
		before := time.Now()
		time.Sleep(5 * time.Millisecond)
		overshoot = append(overshoot, (time.Since(before)-5*time.Millisecond).Seconds()*1e3)
	}
	stop.Store(true)
	spinning.Wait()
	emit(fields{"bench": "preempted", "value": quantile(overshoot, 0.5), "unit": "ms",
		"p99_ms": quantile(overshoot, 0.99), "samples": len(overshoot),
		"check": fmt.Sprintf("%d samples", len(overshoot))})
}

func nanosleep(ns int64) {
	request := syscall.NsecToTimespec(ns)
	_, _, errno := syscall.Syscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&request)), 0, 0)
	check(errno == 0 || errno == syscall.EINTR, "nanosleep: %v", errno)
}

// memoryBytes is the resident memory with its page tables.
func memoryBytes() int64 {
	status, err := os.ReadFile("/proc/self/status")
	check(err == nil, "%v", err)
	var kib int64
	for _, line := range strings.Split(string(status), "\n") {
		if strings.HasPrefix(line, "VmRSS:") || strings.HasPrefix(line, "VmPTE:") {
			n, err := strconv.ParseInt(strings.Fields(line)[1], 10, 64)
			check(err == nil, "%v", err)
			kib += n
		}
	}
	return kib * 1024
}

// Two processes on one CPU, of which one should win: see bench/peers/report/src/contest.rs.
// Goroutines have no priorities.
func priorities(bench string, ms int) {
	var allowed, one [128]uint64
	// This kernel thread starts both processes, which inherit the one CPU that it may use.
	runtime.LockOSThread()
	_, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, 0, unsafe.Sizeof(allowed), uintptr(unsafe.Pointer(&allowed)))
	check(errno == 0, "sched_getaffinity: %v", errno)
	for i, word := range allowed {
		if word != 0 {
			one[i] = word & -word
			break
		}
	}
	_, _, errno = syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, 0, unsafe.Sizeof(one), uintptr(unsafe.Pointer(&one)))
	check(errno == 0, "sched_setaffinity: %v", errno)
	start := clockNs(1) + 500_000_000
	half := func(urgent string) *exec.Cmd {
		words := []string{"priorities_half", urgent, strconv.FormatInt(start, 10), strconv.FormatInt(start+int64(ms)*1_000_000, 10)}
		command := exec.Command("/proc/self/exe", words...)
		command.Stdout = new(strings.Builder)
		check(command.Start() == nil, "cannot start a half")
		return command
	}
	halves := []*exec.Cmd{half("2"), half("1")}
	var used [2]float64
	for i, command := range halves {
		check(command.Wait() == nil, "a half fails")
		text := strings.TrimSpace(command.Stdout.(*strings.Builder).String())
		ns, err := strconv.ParseFloat(text, 64)
		check(err == nil, "a half printed `%s`", text)
		used[i] = ns
	}
	emit(fields{"bench": bench, "value": 100 * used[0] / (used[0] + used[1]), "unit": "%",
		"check": fmt.Sprintf("%.3f s and %.3f s of processor time", used[0]/1e9, used[1]/1e9)})
}

func priorityHalf(start, end int64) {
	until := func(ns int64) {
		for clockNs(1) < ns {
		}
	}
	until(start)
	before := clockNs(2)
	until(end)
	fmt.Println(clockNs(2) - before)
}

// 1 is CLOCK_MONOTONIC, 2 is CLOCK_PROCESS_CPUTIME_ID.
func clockNs(clock uintptr) int64 {
	var now syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&now)), 0)
	return now.Nano()
}

func quantile(values []float64, q float64) float64 {
	sort.Float64s(values)
	at := int(q * float64(len(values)))
	if at == len(values) {
		at--
	}
	return values[at]
}

func timed(work func()) time.Duration {
	start := time.Now()
	work()
	return time.Since(start)
}

func per(elapsed time.Duration, n int) float64 { return float64(elapsed.Nanoseconds()) / float64(n) }

func argument(at, otherwise int) int {
	if at >= len(os.Args) {
		return otherwise
	}
	n, err := strconv.Atoi(os.Args[at])
	if err != nil || n < 1 {
		usage()
	}
	return n
}

func check(holds bool, format string, args ...any) {
	if !holds {
		fmt.Fprintf(os.Stderr, format+"\n", args...)
		os.Exit(1)
	}
}

func emit(line fields) {
	text, err := json.Marshal(line)
	check(err == nil, "%v", err)
	fmt.Println(string(text))
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: PROG spawn_join|yield|rendezvous|sieve|semaphores|parked|blocked|page_fault|preempted|urgent|priorities|priorities_alone|priorities_plain [ARGS]")
	os.Exit(2)
}
