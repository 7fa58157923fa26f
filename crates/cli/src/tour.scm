;; The tour: what microprocesses do, on real work. Each part checks itself.

(define (milliseconds-since start)
  (exact (round (* 1000 (/ (- (current-jiffy) start) (jiffies-per-second))))))

(define (show . parts)
  (for-each display parts)
  (newline)
  (flush-output-port))

(define (check what got expected)
  (unless (equal? got expected)
    (error (string-append "tour: wrong " what) got expected)))

;; 1. Paper 1's prime sieve (table 4): each prime is a thread that passes on numbers which it does not
;; divide.
;; The last message on a channel is (end . N): N messages were sent on the way here.

(define (start-source limit)
  (let ((out (make-channel)))
    (spawn (lambda ()
             (do ((n 2 (+ n 1)))
                 ((> n limit) (channel-send! out (cons 'end (- limit 1))))
               (channel-send! out n))))
    out))

(define (start-filter prime in)
  (let ((out (make-channel)))
    (spawn (lambda ()
             (let loop ((sent 0))
               (let ((n (channel-receive in)))
                 (cond ((pair? n) (channel-send! out (cons 'end (+ (cdr n) 1 sent))))
                       ((zero? (remainder n prime)) (loop sent))
                       (else (channel-send! out n) (loop (+ sent 1))))))))
    out))

(define (sieve limit)                   ; => primes, messages
  (let loop ((in (start-source limit)) (primes '()))
    (let ((n (channel-receive in)))
      (if (pair? n)
          (values (reverse primes) (+ (cdr n) 1))
          (loop (start-filter n in) (cons n primes))))))

(define (tour-sieve limit primes-expected messages-expected)
  (let ((start (current-jiffy)))
    (let-values (((primes messages) (sieve limit)))
      (check "number of primes" (length primes) primes-expected)
      (check "number of messages" messages messages-expected)
      (show "sieve to " limit ": " (length primes) " primes, " (+ 1 (length primes)) " threads, "
            messages " messages in " (milliseconds-since start) " ms"))))

;; 2. Paper 4's programs (table 1).

(define (ackermann m n)
  (cond ((= m 0) (+ n 1))
        ((= n 0) (ackermann (- m 1) 1))
        (else (ackermann (- m 1) (ackermann m (- n 1))))))

(define (quicksort numbers)
  (if (null? numbers)
      '()
      (let ((pivot (car numbers)))
        (let loop ((rest (cdr numbers)) (below '()) (above '()))
          (cond ((null? rest) (append (quicksort below) (list pivot) (quicksort above)))
                ((< (car rest) pivot) (loop (cdr rest) (cons (car rest) below) above))
                (else (loop (cdr rest) below (cons (car rest) above))))))))

(define (scrambled count)               ; each of 0 .. count-1 once, where 35 and count have no common factor
  (let loop ((i (- count 1)) (numbers '()))
    (if (< i 0) numbers (loop (- i 1) (cons (remainder (* i 35) count) numbers)))))

(define (tour-papers)
  (check "ackermann" (ackermann 3 3) 61)
  (show "(ackermann 3 3) = " (ackermann 3 3))
  (let ((sorted (quicksort (scrambled 72))))
    (check "quicksort" sorted (iota 72))
    (show "quicksort of 72 numbers: " (list-head sorted 6) " ... " (list-ref sorted 71))))

(define (list-head items count)
  (if (zero? count) '() (cons (car items) (list-head (cdr items) (- count 1)))))

;; 3. Word frequencies of a real text, read through a port.

(define (words-of port)                 ; => a hash table: word => count
  (let ((counts (make-hash-table)))
    (let next-word ((letters '()))
      (let ((c (read-char port)))
        (cond ((and (char? c) (char-alphabetic? c))
               (next-word (cons (char-downcase c) letters)))
              (else
               (unless (null? letters)
                 (hash-table-update!/default counts (list->string (reverse letters))
                                             (lambda (n) (+ n 1)) 0))
               (if (eof-object? c) counts (next-word '()))))))))

(define (most-frequent counts how-many)
  (list-head (list-sort (lambda (a b) (or (> (cdr a) (cdr b))
                                           (and (= (cdr a) (cdr b)) (string<? (car a) (car b)))))
                         (hash-table->alist counts))
              how-many))

(define (tour-words)
  (let ((file (let first ((names '("LICENSE-APACHE" "/usr/share/common-licenses/Apache-2.0")))
                (cond ((null? names) #f)
                      ((file-exists? (car names)) (car names))
                      (else (first (cdr names)))))))
    (if file
        (show "most frequent words of " file ": "
              (most-frequent (call-with-input-file file words-of) 5))
        (show "word frequencies: no text found here"))))

;; 4. A thousand threads sleep in the kernel; they must not delay a ticker.

(define (tick-while running?)           ; => ticks, longest gap in jiffies
  (let loop ((last (current-jiffy)) (ticks 0) (gap 0))
    (if (running?)
        (begin
          (thread-sleep! 0.001)
          (let ((now (current-jiffy)))
            (loop now (+ ticks 1) (max gap (- now last)))))
        (list ticks gap))))

(define (tour-blocked count)
  (let* ((running #t)
         (ticker (spawn (lambda () (tick-while (lambda () running)))))
         (start (current-jiffy))
         (sleepers (map (lambda (_) (spawn (lambda () (raw-sleep 0.010)))) (iota count))))
    (for-each thread-join! sleepers)
    (let ((elapsed (milliseconds-since start)))
      (set! running #f)
      (let ((seen (thread-join! ticker)))
        (show count " threads in a raw 10 ms kernel sleep: " elapsed
              " ms in all; a 1 ms ticker ticked " (car seen) " times, longest gap "
              (exact (round (* 1000 (/ (cadr seen) (jiffies-per-second))))) " ms")))))

;; 5. A timer beside loops that never yield.

(define (tour-preempted)
  (let ((hogs (map (lambda (_) (spawn (lambda () (let forever () (forever))))) '(1 2 3 4)))
        (start (current-jiffy)))
    (thread-sleep! 0.050)
    (show "a 50 ms timer beside four loops that never yield fired after "
          (milliseconds-since start) " ms")
    (for-each thread-terminate! hogs)))

(tour-sieve 700 125 9055)
(tour-sieve 10000 1229 779090)
(tour-papers)
(tour-words)
(tour-blocked 1000)
(tour-preempted)
