;;; (kyocho guardian): an object that is otherwise unreachable is returned once by each guardian
;;; that watches it.
(import (scheme base) (scheme write) (scheme process-context) (kyocho guardian) (srfi 18) (srfi 124)
        (only (kyocho) gc make-hash-table hash-table-set! hash-table-size))
(include "harness.scm")

;; All objects that a guardian returns, in order.
(define (drain guardian)
  (let loop ((given '()))
    (let ((next (guardian)))
      (if next (loop (cons next given)) (reverse given)))))

(define g (make-guardian))
(test #t (procedure? g))
(test #f (g))
(test-error (g 1 2))

;; Reachable objects stay; an unreachable one is returned intact, and once.
(define kept (list 'kept))
(g kept)
(g (list 'lost (vector 1 2 3)))
(gc)
(test '((lost #(1 2 3))) (drain g))
(gc)
(test #f (g))
(test '(kept) kept)

;; After the last reference is removed; and values that are not heap objects are never returned.
(g 5)
(g 'symbol)
(set! kept #f)
(gc)
(test '((kept)) (drain g))

;; In the order of registration, as often as registered, and by each guardian.
(define h (make-guardian))
(define (watch-some)
  (g (list 1))
  (g (list 2))
  (let ((both (list 'both))) (g both) (g both) (h both)))
(watch-some)
(gc)
(test '((1) (2) (both) (both)) (drain g))
(test '((both)) (drain h))

;; Objects reachable from a saved object are saved too, and are returned in the same collection if
;; they are watched.
(define (watch-nested)
  (let* ((inner (list 'inner)) (outer (list 'outer inner)))
    (g outer)
    (h inner)))
(watch-nested)
(gc)
(define outer (g))
(define inner (h))
(test '(outer (inner)) outer)
(test #t (eq? (cadr outer) inner))
(set! outer #f)
(set! inner #f)
(gc)
(test '(#f #f) (list (g) (h)))

;; A cycle, and an object that refers to its guardian.
(define (watch-ring)
  (let ((ring (list 'ring g)))
    (set-cdr! (cdr ring) ring)
    (g ring)))
(watch-ring)
(gc)
(test 'ring (car (g)))

;; A returned object may be registered again.
(define (watch-again) (g (list 'again)))
(watch-again)
(gc)
(g (g))
(gc)
(test '((again)) (drain g))

;; An unreachable guardian saves nothing, unless another guardian has saved it.
((make-guardian) (list 'unseen))
(define (watch-watcher)
  (let ((watcher (make-guardian)))
    (watcher (list 'watched))
    (g watcher)))
(watch-watcher)
(gc)
(define watcher (g))
(test #t (procedure? watcher))
(test '((watched)) (drain watcher))

;; Ephemerons whose keys a guardian saved are intact until the key was taken and is unreachable
;; again.
(define (watch-key)
  (let ((key (list 'key)))
    (g key)
    (make-ephemeron key (list 'datum))))
(define by-key (watch-key))
(gc)
(test '(#f (datum)) (list (ephemeron-broken? by-key) (ephemeron-datum by-key)))
(define key (g))
(test #t (eq? key (ephemeron-key by-key)))
(set! key #f)
(gc)
(test #t (ephemeron-broken? by-key))

;; So are associations of weak tables.
(define table (make-hash-table eq? 'weak-keys))
(define (watch-association)
  (let ((key (list 'key)))
    (hash-table-set! table key (list 'value))
    (g key)))
(watch-association)
(gc)
(test 1 (hash-table-size table))
(set! key (g))

;; An object reachable only from the datum of an intact ephemeron is reachable.
(define (watch-datum) (let ((datum (list 'datum))) (g datum) (make-ephemeron key datum)))
(set! by-key (watch-datum))
(gc)
(test #f (g))
(set! key #f)
(gc)
(test '((datum)) (drain g))
(test '(#t 0) (list (ephemeron-broken? by-key) (hash-table-size table)))

;; Several threads register objects with one guardian and take them: each object is returned to
;; exactly one thread.
(define each 200)
(define shared (make-guardian))
(define seen (make-vector (* 2 each) 0))
(define (note! object)
  (vector-set! seen (vector-ref object 0) (+ 1 (vector-ref seen (vector-ref object 0)))))
(define (register-and-take from)
  (do ((i 0 (+ i 1))) ((= i each))
    (shared (vector (+ from i) (list i)))
    (let ((given (shared))) (if given (note! given)))))
(define threads
  (map (lambda (from) (thread-start! (make-thread (lambda () (register-and-take from)))))
       (list 0 each)))
(for-each thread-join! threads)
(gc)
(gc)
(for-each note! (drain shared))
(test (make-vector (* 2 each) 1) seen)

(finish)
