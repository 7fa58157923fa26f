;;; Numbers: procedures with two values, and rarely needed ones.

(define (exact-integer-sqrt n)
  (let ((both (%exact-integer-sqrt n)))
    (values (car both) (cdr both))))

(define (floor/ n d) (values (floor-quotient n d) (floor-remainder n d)))
(define (truncate/ n d) (values (truncate-quotient n d) (truncate-remainder n d)))

;; The simplest fraction in [lo, hi], by the Stern-Brocot tree (R7RS 6.2.6).
(define (%simplest lo hi)
  (let ((whole (floor lo)))
    (cond ((= whole lo) whole)
          ((< whole (floor hi)) (+ whole 1))
          (else (+ whole (/ (%simplest (/ (- hi whole)) (/ (- lo whole)))))))))

(define (rationalize x tolerance)
  (let ((t (abs tolerance)))
    (cond ((or (nan? x) (nan? t)) (if (nan? x) x t))
          ((infinite? t) (if (infinite? x) (- x x) 0.0))
          ((infinite? x) x)
          ((and (exact? x) (exact? t))
           (let ((lo (- x t)) (hi (+ x t)))
             (cond ((> lo 0) (%simplest lo hi))
                   ((< hi 0) (- (%simplest (- hi) (- lo))))
                   (else 0))))
          (else (inexact (rationalize (exact x) (exact t)))))))
