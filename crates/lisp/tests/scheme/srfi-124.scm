;;; SRFI 124: ephemerons, broken by the collector and by nothing else.
(import (scheme base) (scheme write) (scheme process-context) (srfi 124) (srfi 18)
        (only (kyocho) gc))
(include "harness.scm")

(define (status e) (list (ephemeron-broken? e) (ephemeron-key e) (ephemeron-datum e)))

;; The basic procedures.
(define key (list 'key))
(define whole (make-ephemeron key 'datum))
(test '(#t #f #f) (map ephemeron? (list whole key 'key)))
(test '(#f (key) datum) (status whole))
(test #t (eq? key (ephemeron-key whole)))
(test #f (equal? whole (make-ephemeron key 'datum)))
(test-error (ephemeron-key key))
(test-error (ephemeron-datum 5))
(test-error (ephemeron-broken? "no"))
(test-error (make-ephemeron key))

;; A reachable key keeps the datum alive, which has no other reference.
(define with-datum (make-ephemeron key (list 1 2 (vector 3))))
(gc)
(test '(#f (key) (1 2 #(3))) (status with-datum))
(test '(#f (key) datum) (status whole))

;; Keys that are not heap objects are always reachable.
(define immediates (map (lambda (key) (make-ephemeron key (list key))) (list 1 #\a 'symbol #t '())))
(gc)
(test '((1) (#\a) (symbol) (#t) (())) (map ephemeron-datum immediates))

;; An unreachable key breaks the ephemeron, and the datum is freed, even if it refers to the key or
;; is the key.
(define dead (make-ephemeron (list 'gone) (list 'gone-too)))
(define to-itself (let ((key (list 'gone))) (make-ephemeron key (vector key))))
(define twice (let ((key (string #\g))) (make-ephemeron key key)))
(define by-chance
  (let ((key (list 'gone)))
    (list (make-ephemeron key 1) (make-ephemeron key 2))))
(gc)
(test '(#t #f #f) (status dead))
(test '(#t #f #f) (status to-itself))
(test '(#t #f #f) (status twice))
(test '(#t #t) (map ephemeron-broken? by-chance))
(gc)
(test '(#t #f #f) (status dead))

;; After the last reference to a key is removed.
(define holder (vector (list 'held)))
(define held (make-ephemeron (vector-ref holder 0) (list 'datum)))
(gc)
(test '(#f (held) (datum)) (status held))
(vector-set! holder 0 #f)
(gc)
(test '(#t #f #f) (status held))

;; A key in use by the program is kept alive up to that point.
(test #f (let* ((key (list 'kept)) (e (make-ephemeron key 'datum)))
           (gc)
           (let ((broken? (ephemeron-broken? e)))
             (reference-barrier key)
             broken?)))

;; Chains in which each datum is the key of the next ephemeron. In one order the collector finds
;; each key first, in the other each ephemeron.
(define (chain length first)
  (let loop ((n 0) (key first) (chain '()))
    (if (= n length)
        chain
        (let ((datum (list n)))
          (loop (+ n 1) datum (cons (make-ephemeron key datum) chain))))))
(define (count-broken es)
  (let loop ((es es) (n 0))
    (if (null? es) n (loop (cdr es) (if (ephemeron-broken? (car es)) (+ n 1) n)))))
(define chain-length 300)
(define first-key (list 'first))
(define backwards (chain chain-length first-key))
(define forwards (reverse (chain chain-length first-key)))
(gc)
(test 0 (count-broken backwards))
(test 0 (count-broken forwards))
(test '(299) (ephemeron-datum (car backwards)))
(set! first-key #f)
(gc)
(test chain-length (count-broken backwards))
(test chain-length (count-broken forwards))

;; Two ephemerons that keep each other alive are garbage nevertheless.
(define ring
  (let* ((a (list 'a)) (b (list 'b)))
    (list (make-ephemeron a b) (make-ephemeron b a))))
(gc)
(test 2 (count-broken ring))

;; A value read from an ephemeron during a collection is intact, whenever its last other reference
;; was removed. The key is made unreachable; it is then found by an immediate read, or has been
;; freed.
(define (race turns)
  (let loop ((n 0) (wrong 0))
    (if (= n turns)
        wrong
        (let* ((holder (vector (list n)))
               (e (make-ephemeron (vector-ref holder 0) (vector n (list n)))))
          (vector-set! holder 0 #f)
          (if (= 0 (modulo n 8)) (thread-yield!))
          (let* ((datum (ephemeron-datum e)) (key (ephemeron-key e)))
            (make-vector 40 n)
            (loop (+ n 1)
                  (if (and (or (not key) (equal? key (list n)))
                           (or (not datum) (equal? datum (vector n (list n)))))
                      wrong
                      (+ wrong 1))))))))
(define racers (map (lambda (_) (thread-start! (make-thread (lambda () (race 300))))) '(1 2)))
(test '(0 0) (map thread-join! racers))

(finish)
