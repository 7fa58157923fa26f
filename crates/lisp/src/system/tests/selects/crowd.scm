;; Eight senders and eight receivers, over four channels, in every possible way; some of them are
;; ended meanwhile. (crowd seed kills?) is () if each message was received at most once, and was
;; sent if and only if it was received.

(define senders 8)
(define receivers 8)
(define messages 40)

(define (random-from seed)
  (lambda (n)
    (set! seed (modulo (+ (* seed 1103515245) 12345) 2147483648))
    (quotient (* seed n) 2147483648)))

(define (crowd seed kills?)
  (define random (random-from seed))
  (define channels (map make-channel '(0 0 1 3)))
  (define (one-of channels random) (list-ref channels (random 4)))
  (define sent (make-vector senders 0))
  (define got (make-vector (+ senders receivers) '()))
  (define (note! i message) (vector-set! got i (cons message (vector-ref got i))))
  (define sends (lambda (message) (map (lambda (c) (list 'send c message)) channels)))
  (define receives (map (lambda (c) (list 'receive c 'end)) channels))

  ;; Sends one message in one of four ways. In the last way it receives meanwhile.
  (define (send i message random)
    (let again ((way (random 4)))
      (case way
        ((0) (channel-send! (one-of channels random) message))
        ((1) (channel-select (sends message)))
        ((2) (select ((channel-send! (car channels) message) #t)
                     ((channel-send! (one-of channels random) message) #t)
                     ((thread-sleep! 0.0002) (again way))))
        (else
         (call-with-values
          (lambda () (channel-select (append (sends message) (list (list 'receive (one-of channels random))))))
          (lambda (case other) (if (= case 4) (begin (note! (+ receivers i) other) (again way)))))))))

  (define (sender i)
    (let ((random (random-from (+ seed i 1))))
      (do ((n 0 (+ n 1))) ((= n messages) 'done)
        (send i (+ (* i messages) n) random)
        (vector-set! sent i (+ n 1)))))

  ;; Receivers that are not ended use all channels, so every message is received.
  (define (receiver i)
    (let ((random (random-from (+ seed i 101))))
      (let loop ()
        (let ((message
               (case (random (if (odd? i) 4 3))
                 ((0) (let-values (((case message) (channel-select receives 0.0002))) message))
                 ((1 2) (let-values (((case message) (channel-select receives))) message))
                 (else (channel-receive (one-of channels random) 'end)))))
          (cond ((eq? message 'end) 'done)
                ((not message) (loop))
                (else (note! i message) (loop)))))))

  (define (end-of thread)
    (guard (e ((terminated-thread-exception? e) 'terminated)) (thread-join! thread)))
  (define (drained channel)
    (let ((message (channel-receive channel 'end)))
      (if (eq? message 'end) '() (cons message (drained channel)))))

  (let* ((receiving (map (lambda (i) (spawn (lambda () (receiver i)))) (iota receivers)))
         (sending (map (lambda (i) (spawn (lambda () (sender i)))) (iota senders))))
    (if kills?
        (for-each
         (lambda (i r s)
           (do ((n (random 200) (- n 1))) ((= n 0)) (thread-yield!))
           (if (odd? i) (begin (thread-terminate! r) (thread-terminate! s))))
         (iota senders) receiving sending))
    (let ((ends (map end-of sending)))
      (for-each channel-close! channels)
      (let* ((all-ends (append ends (map end-of receiving)))
             (left (append-map drained channels))
             (all (list-sort < (append left (append-map values (vector->list got)))))
             (ended (count (lambda (end) (eq? end 'terminated)) all-ends))
             (confirmed (fold + 0 (vector->list sent)))
             (was-sent? (lambda (m) (<= (modulo m messages) (vector-ref sent (quotient m messages)))))
             (missing (filter (lambda (m) (not (memv m all)))
                              (append-map (lambda (i) (map (lambda (n) (+ n (* i messages))) (iota (vector-ref sent i)))) (iota senders)))))
        (append
         (if (equal? all (delete-duplicates all)) '() (list (list 'twice all)))
         (filter-map (lambda (m) (and (not (was-sent? m)) (list 'not-sent m))) all)
         ;; A receiver that is ended may have taken one message that it could not record.
         (if (<= (length missing) ended) '() (list (list 'missing missing ended)))
         (if kills? '() (if (= confirmed (length all) (* senders messages)) '() (list (list 'count confirmed (length all))))))))))
