// The program of the tests of the FreeBSD personality. The first argument selects the part.
package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

func must(err error) {
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

func hello() {
	host, err := os.Hostname()
	must(err)
	self, err := os.Executable()
	must(err)
	system, err := syscall.Sysctl("kern.ostype")
	must(err)
	fmt.Println("hello", runtime.GOOS, system, os.Args[2:], filepath.Base(self), len(host) > 0, os.Getpid() > 1)
}

func files() {
	must(os.MkdirAll("folder/below", 0o755))
	for number := range 200 {
		must(os.WriteFile(fmt.Sprintf("folder/file%d", number), bytes.Repeat([]byte("x"), number), 0o640))
	}
	entries, err := os.ReadDir("folder")
	must(err)
	var sum int64
	for _, entry := range entries {
		about, err := entry.Info()
		must(err)
		if !about.IsDir() {
			sum += about.Size()
		}
	}
	about, err := os.Stat("folder/file77")
	must(err)
	fmt.Println(len(entries), sum, about.Mode(), about.Size(), time.Since(about.ModTime()) < time.Hour)
	from, err := os.Open("folder/file199")
	must(err)
	to, err := os.OpenFile("copy", os.O_CREATE|os.O_EXCL|os.O_RDWR|os.O_APPEND, 0o600)
	must(err)
	copied, err := io.Copy(to, from)
	must(err)
	_, err = to.WriteString("end")
	must(err)
	_, err = to.Seek(-5, io.SeekEnd)
	must(err)
	rest, err := io.ReadAll(to)
	must(err)
	fmt.Println(copied, string(rest))
	must(os.Rename("copy", "folder/below/moved"))
	must(os.Symlink("below/moved", "folder/link"))
	target, err := os.Readlink("folder/link")
	must(err)
	must(os.Truncate("folder/link", 7))
	about, err = os.Lstat("folder/link")
	must(err)
	through, err := os.Stat("folder/link")
	must(err)
	fmt.Println(target, about.Mode().Type() == os.ModeSymlink, through.Size())
	must(os.Chtimes("folder/link", time.Unix(1, 0), time.Unix(1000, 5000)))
	through, err = os.Stat("folder/link")
	must(err)
	must(os.Chdir("folder/below"))
	here, err := os.Getwd()
	must(err)
	fmt.Println(through.ModTime().UnixNano(), filepath.Base(here))
	_, err = os.Open("nothing")
	fmt.Println(err, os.IsNotExist(err))
	_, err = os.OpenFile("moved", os.O_CREATE|os.O_EXCL, 0)
	fmt.Println(err, os.IsExist(err))
	fmt.Println(os.Remove("../../folder"))
	must(os.RemoveAll("../../folder"))
	_, err = os.Stat("../../folder")
	fmt.Println(os.IsNotExist(err))
}

// Goroutines that compute, allocate, wait and communicate, while the collector runs.
func goroutines() {
	var group sync.WaitGroup
	var total atomic.Int64
	results := make(chan int)
	for worker := range 64 {
		group.Add(1)
		go func() {
			defer group.Done()
			list := map[int][]byte{}
			for round := range 200 {
				list[round%50] = make([]byte, 1024+worker)
				if round%40 == 0 {
					time.Sleep(time.Millisecond)
				}
				total.Add(1)
			}
			results <- len(list)
		}()
	}
	go func() { group.Wait(); close(results) }()
	sum := 0
	for result := range results {
		sum += result
	}
	// A goroutine that makes no calls is preempted by a signal to its thread.
	runtime.GOMAXPROCS(1)
	var stop atomic.Bool
	go func() {
		for !stop.Load() {
		}
	}()
	runtime.Gosched()
	runtime.GC()
	stop.Store(true)
	locked := make(chan bool)
	for range 8 {
		// A goroutine that ends with its thread.
		go func() { runtime.LockOSThread(); locked <- true }()
		<-locked
	}
	timer := time.NewTimer(20 * time.Millisecond)
	ticker := time.NewTicker(2 * time.Millisecond)
	ticks := 0
	for fired := false; !fired; {
		select {
		case <-ticker.C:
			ticks++
		case <-timer.C:
			fired = true
		}
	}
	fmt.Println(sum, total.Load(), ticks > 0)
}

func signals() {
	heard := make(chan os.Signal, 4)
	signal.Notify(heard, syscall.SIGUSR1, syscall.SIGTERM, syscall.SIGHUP)
	signal.Ignore(syscall.SIGHUP)
	for _, number := range []syscall.Signal{syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGTERM} {
		must(syscall.Kill(os.Getpid(), number))
	}
	names := []string{(<-heard).String(), (<-heard).String()}
	sort.Strings(names)
	fmt.Println(strings.Join(names, ", "))
	defer func() {
		fmt.Println(recover())
		signal.Reset()
		must(syscall.Kill(os.Getpid(), syscall.SIGINT))
		select {}
	}()
	var nothing *[4]int
	fmt.Println(nothing[2])
}

func crash() {
	var nothing *struct{ value int }
	fmt.Println(nothing.value)
}

func bad() {
	// Invalid addresses are errors, not faults.
	_, _, errno := syscall.Syscall(syscall.SYS_FSTAT, 1, 8, 0)
	_, _, other := syscall.Syscall(syscall.SYS___SYSCTL, 8, 2, 0)
	_, _, none := syscall.Syscall(518, 0, 0, 0)
	fmt.Println(errno, "|", other, "|", none)
}

func echo() {
	const clients, rounds = 100, 5
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { io.Copy(connection, connection); connection.Close() }()
		}
	}()
	var group sync.WaitGroup
	var right atomic.Int64
	for client := range clients {
		group.Add(1)
		go func() {
			defer group.Done()
			connection, err := net.Dial("tcp", listener.Addr().String())
			must(err)
			for round := range rounds {
				text := fmt.Sprintf("client %d round %d %s", client, round, strings.Repeat("y", 3000))
				_, err = io.WriteString(connection, text)
				must(err)
				answer := make([]byte, len(text))
				_, err = io.ReadFull(connection, answer)
				must(err)
				if string(answer) == text {
					right.Add(1)
				}
			}
			must(connection.(*net.TCPConn).CloseWrite())
			rest, err := io.ReadAll(connection)
			must(err)
			if len(rest) == 0 {
				right.Add(1)
			}
		}()
	}
	group.Wait()
	must(listener.Close())
	_, err = net.DialTimeout("tcp", listener.Addr().String(), time.Minute)
	var refused syscall.Errno
	for inner := err; inner != nil; {
		if number, is := inner.(syscall.Errno); is {
			refused = number
		}
		unwrapping, is := inner.(interface{ Unwrap() error })
		if !is {
			break
		}
		inner = unwrapping.Unwrap()
	}
	quiet, waiting := net.Pipe()
	_ = waiting
	must(quiet.SetReadDeadline(time.Now().Add(time.Millisecond)))
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(err)
	must(packets.SetReadDeadline(time.Now().Add(5 * time.Millisecond)))
	_, _, late := packets.ReadFrom(make([]byte, 8))
	must(packets.SetReadDeadline(time.Time{}))
	_, err = packets.WriteTo([]byte("packet"), packets.LocalAddr())
	must(err)
	bytes := make([]byte, 16)
	count, from, err := packets.ReadFrom(bytes)
	must(err)
	same := from.String() == packets.LocalAddr().String()
	fmt.Println(right.Load(), refused == syscall.ECONNREFUSED, os.IsTimeout(late), string(bytes[:count]), same)
}

func execute() {
	self, err := os.Executable()
	must(err)
	child := exec.Command(self, "hello", "from", "a", "child")
	child.Dir = "/"
	child.Env = []string{"A=b"}
	output, err := child.CombinedOutput()
	must(err)
	fmt.Print(string(output))
	child = exec.Command(self, "cat")
	child.Stdin = strings.NewReader(strings.Repeat("through pipes ", 20000))
	output, err = child.Output()
	must(err)
	fmt.Println(len(output))
	err = exec.Command(self, "status", "42").Run()
	fmt.Println(err)
	child = exec.Command(self, "wait")
	must(child.Start())
	must(child.Process.Signal(syscall.SIGTERM))
	fmt.Println(child.Wait())
	_, err = exec.Command("/nothing/there").Output()
	fmt.Println(err)
	fmt.Println(exec.Command("/bin/sh", "-c", "true").Run())
	var group sync.WaitGroup
	var ended atomic.Int64
	for range 16 {
		group.Add(1)
		go func() {
			defer group.Done()
			if exec.Command(self, "status", "0").Run() == nil {
				ended.Add(1)
			}
		}()
	}
	group.Wait()
	fmt.Println(ended.Load())
}

// Timers of a queue, figures of a disk, settings of a terminal, and a priority.
func system() {
	queue, err := syscall.Kqueue()
	must(err)
	changes := []syscall.Kevent_t{
		{Ident: 7, Filter: syscall.EVFILT_TIMER, Flags: syscall.EV_ADD | syscall.EV_ONESHOT, Data: 1},
		{Ident: 8, Filter: syscall.EVFILT_TIMER, Flags: syscall.EV_ADD, Fflags: 1, Data: 3600},
	}
	events := make([]syscall.Kevent_t, 4)
	count, err := syscall.Kevent(queue, changes, events, nil)
	must(err)
	_, err = syscall.Kevent(queue, []syscall.Kevent_t{{Ident: 7, Filter: syscall.EVFILT_TIMER, Flags: syscall.EV_DELETE}}, nil, nil)
	fmt.Println(count, events[0].Ident, events[0].Filter == syscall.EVFILT_TIMER, events[0].Data, err)
	var volume syscall.Statfs_t
	must(syscall.Statfs(".", &volume))
	here, err := os.Open(".")
	must(err)
	var same syscall.Statfs_t
	must(syscall.Fstatfs(int(here.Fd()), &same))
	volumes := make([]syscall.Statfs_t, 4)
	count, err = syscall.Getfsstat(volumes, 1)
	must(err)
	fmt.Println(volume.Blocks > 0, volume.Blocks == same.Blocks, count, volumes[0].Mntonname[0] == '/', syscall.Statfs("nothing", &volume))
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	must(err)
	settings := make([]uint32, 11)
	request := func(file *os.File, number, place uintptr) syscall.Errno {
		_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, file.Fd(), number, place)
		return errno
	}
	place := uintptr(unsafe.Pointer(&settings[0]))
	first := request(terminal, syscall.TIOCGETA, place)
	echoes := settings[3]&syscall.ECHO != 0
	settings[3] &^= syscall.ECHO | syscall.ICANON
	second := request(terminal, syscall.TIOCSETA, place)
	settings[3] = 0
	request(terminal, syscall.TIOCGETA, place)
	fmt.Println(first, second, echoes, settings[3]&(syscall.ECHO|syscall.ICANON), settings[3]&syscall.ISIG != 0)
	fmt.Println(request(here, syscall.TIOCGETA, place), "|", request(terminal, syscall.TIOCGETA, 8), "|", request(terminal, syscall.TIOCSETA, 8))
	must(syscall.Setpriority(0, 0, 19))
	fmt.Println(syscall.Getpriority(0, 0))
}

func main() {
	switch os.Args[1] {
	case "hello":
		hello()
	case "files":
		files()
	case "goroutines":
		goroutines()
	case "signals":
		signals()
	case "crash":
		crash()
	case "system":
		system()
	case "bad":
		bad()
	case "echo":
		echo()
	case "execute":
		execute()
	case "cat":
		_, err := io.Copy(os.Stdout, os.Stdin)
		must(err)
	case "wait":
		fmt.Println("waiting")
		select {}
	case "status":
		status := 0
		fmt.Sscan(os.Args[2], &status)
		os.Exit(status)
	}
}
