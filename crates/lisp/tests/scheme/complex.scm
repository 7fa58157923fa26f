;;; R7RS §6.2: complex numbers. Real numbers are in numbers.scm.
(import (scheme base) (scheme write) (scheme process-context) (scheme inexact) (scheme complex)
        (scheme read) (scheme eval))
(include "harness.scm")

(define (near-complex? expected actual)
  (and (number? actual)
       (<= (magnitude (- expected actual)) (* 1e-9 (max 1 (magnitude expected))))))
(define-syntax test-close
  (syntax-rules ()
    ((_ expected expression) (check 'expression near-complex? expected (lambda () expression)))))
(define pi (acos -1.0))

;; types
(test #t (complex? 1+2i)) (test #t (number? +i)) (test #f (real? 1+2i)) (test #f (rational? +i)) (test #f (integer? 3+1i))
(test #t (real? -2.5+0i)) (test #f (real? -2.5+0.0i)) (test #f (real? +inf.0+0.0i)) (test #t (complex? +nan.0+5.0i))
(test #f (exact-integer? 1+i)) (test #f (exact-integer? +i))
(test #t (exact? 1/2+3i)) (test #f (exact? 1.0+2.0i)) (test #t (inexact? 1+2.0i)) (test #f (inexact? +i))
(test #t (finite? 1+2i)) (test #f (finite? +inf.0+5.0i)) (test #f (finite? 5.0+nan.0i)) (test #t (finite? 1.0-2.0i))
(test #t (infinite? 5.0-inf.0i)) (test #t (infinite? +inf.0+nan.0i)) (test #f (infinite? 1+i)) (test #t (nan? 5.0+nan.0i)) (test #f (nan? 1+2i)) (test #f (nan? 1.0+inf.0i))
(test #f (zero? +i)) (test #t (zero? 0.0+0.0i)) (test #t (zero? -0.0-0.0i)) (test #f (zero? 0.0+1.0i))

;; parts
(test 1 (real-part 1+2i)) (test 2 (imag-part 1+2i)) (test 0 (real-part +i)) (test -1 (imag-part -i)) (test 5 (real-part 5)) (test 0 (imag-part 5)) (test 1.5 (real-part 1.5)) (test 0 (imag-part 1.5))
(test 1/2+2/3i (make-rectangular 1/2 2/3)) (test 3 (make-rectangular 3 0)) (test 1.5 (make-rectangular 1.5 0)) (test 3.0+0.0i (make-rectangular 3 0.0)) (test 0.0+2.0i (make-rectangular 0 2.0)) (test 2.0+1.0i (make-rectangular 2.0 1))
(test 5 (magnitude 3+4i)) (test 5/2 (magnitude -3/2+2i)) (test 5.0 (magnitude 3.0-4.0i)) (test-near (sqrt 2) (magnitude 1+i)) (test 7 (magnitude -7)) (test 1.5 (magnitude -1.5)) (test +inf.0 (magnitude -inf.0+nan.0i)) (test 1e300 (magnitude 6e299+8e299i))
(test 0 (angle 5)) (test 0 (angle 0)) (test 0.0 (angle 5.0)) (test-near pi (angle -1)) (test-near pi (angle -2.5)) (test-near (/ pi 2) (angle +i)) (test-near (/ pi -2) (angle -2i)) (test-near (/ pi 4) (angle 1+i)) (test-near (- pi) (angle -1.0-0.0i)) (test-near pi (angle -1.0+0.0i)) (test +nan.0 (angle +nan.0))
(test 3 (make-polar 3 0)) (test 0 (make-polar 0 1.5)) (test 2.5 (make-polar 2.5 0)) (test-close 0.0+2.0i (make-polar 2 (/ pi 2))) (test-close 1+i (make-polar (sqrt 2) (/ pi 4)))
(test-error (make-rectangular +i 1)) (test-error (make-rectangular 1 +i)) (test-error (make-rectangular 'a 1)) (test-error (make-polar +i 1)) (test-error (make-polar 1 "x")) (test-error (real-part 'a)) (test-error (imag-part "1")) (test-error (magnitude #f)) (test-error (angle '()))

;; arithmetic, exact
(test 4+6i (+ 1+2i 3+4i)) (test 3 (+ 1+2i 2-2i)) (test -2-2i (- 1+2i 3+4i)) (test -1-2i (- 1+2i)) (test 1+i (- 1 -i)) (test -5+10i (* 1+2i 3+4i)) (test -1 (* +i +i)) (test 2+4i (* 2 1+2i)) (test 0 (* 0 1+2i)) (test 1/2+i (/ 1+2i 2)) (test 11/25+2/25i (/ 1+2i 3+4i)) (test -i (/ +i)) (test 1/2-1/2i (/ 1+i)) (test 3 (/ 3+6i 1+2i)) (test -3+4i (square 1+2i)) (test 10+i (+ 1 2 3 4+i)) (test -i (* +i +i +i))
(test 100000000000000000000+i (+ 100000000000000000000 +i)) (test 1/3+i (- 1/3 -i))
(test-error (/ 1+2i 0)) (test-error (+ 1+i 'a)) (test-error (* "x" +i)) (test-error (- +i #f)) (test-error (/ 'a +i))
;; inexact and mixed
(test 4.0+6.0i (+ 1.0+2.0i 3+4i)) (test 2.5+2.0i (+ 1+2i 1.5)) (test 1.5+3.0i (* 1.5 1+2i)) (test 0.0+1.0i (- 1.0+1.0i 1.0)) (test 0.44+0.08i (/ 1.0+2.0i 3.0+4.0i)) (test -inf.0+inf.0i (* +inf.0 -1.0+2.0i)) (test -0.5 (real-part (/ -1+2i 2.0)))
(test #f (eqv? 1.0 (+ 1.0+1.0i 0.0-1.0i)))
;; zeros keep their signs when a real number is added
(test "1.0-0.0i" (number->string (+ 1 0.0-0.0i))) (test "-1.0-0.0i" (number->string (- 1.0-0.0i 2))) (test "1.0-0.0i" (number->string (- 1 0.0+0.0i)))

;; equality and order
(test #t (= 1+2i 1+2i)) (test #t (= 1+2i 1.0+2.0i)) (test #f (= 1+2i 1-2i)) (test #f (= 1 1+i)) (test #t (= 3 3.0+0.0i)) (test #f (= 1+2i 1+2i 2+2i)) (test #f (= +nan.0+i +nan.0+i)) (test-error (= +i 'a)) (test-error (= 'a +i)) (test-error (= 1 2 'a))
(test #t (eqv? 1+2i 1+2i)) (test #f (eqv? 1+2i 1.0+2.0i)) (test #t (equal? '(1+2i) (list (+ 1 +2i)))) (test #f (eqv? 0.0+1.0i -0.0+1.0i)) (test #f (eqv? 1+2i 1+3i)) (test #f (eqv? 1+2i 2+2i))
(test 'yes (case (* +i 2) ((+2i) 'yes) (else 'no))) (test '(+i b) (assv +i '((a) (+i b)))) (test #t (if (= +i +i) #t #f))
(test-error (< 1+i 2)) (test-error (< 1 +i)) (test-error (> +i +i)) (test-error (<= 1+i)) (test-error (>= 2 1 +i)) (test-error (max 1 +i)) (test-error (min +i)) (test-error (if (< +i 1) 1 2)) (test-error (positive? +i)) (test-error (negative? 1.0+0.0i)) (test-error (abs -1+i))
(test-error (floor 1+i)) (test-error (round 1.5+1.0i)) (test-error (truncate +i)) (test-error (ceiling +i)) (test-error (quotient +i 1)) (test-error (modulo 3 +i)) (test-error (gcd +i)) (test-error (even? +2i)) (test-error (numerator +i)) (test-error (denominator 1/2+i)) (test-error (exact-integer-sqrt +i)) (test-error (rationalize +i 1)) (test-error (rationalize 1 +i)) (test-error (vector-ref #(1 2) +i)) (test-error (atan +i 1)) (test-error (atan 1 +i)) (test-error (make-vector +i)) (test-error (exact 1.0+inf.0i)) (test-error (exact +nan.0+i))
(test 1+2i (exact 1.0+2.0i)) (test 1/2-1/4i (exact 0.5-0.25i)) (test 0.5+2.0i (inexact 1/2+2i))

;; roots, exact if possible
(test +i (sqrt -1)) (test +2i (sqrt -4)) (test +1/2i (sqrt -1/4)) (test 0.0+2.0i (sqrt -4.0)) (test-close +1.4142135623730951i (sqrt -2)) (test 1+2i (sqrt -3+4i)) (test 1-2i (sqrt -3-4i)) (test 1/2+i (sqrt -3/4+i)) (test 1+i (sqrt +2i)) (test-close 1.272019649514069+0.7861513777574233i (sqrt 1+2i)) (test 1.0+2.0i (sqrt -3.0+4.0i)) (test 0.0-1.0i (sqrt -1.0-0.0i)) (test (make-rectangular 0 10000000000) (sqrt -100000000000000000000))
;; powers
(test -1 (expt +i 2)) (test -i (expt +i 3)) (test 1 (expt +i 100000000000000000000)) (test -i (expt +i 100000000000000000003)) (test +i (expt -i 100000000000000000003)) (test -3+4i (expt 1+2i 2)) (test 1 (expt 1+2i 0)) (test 1/10-3/10i (expt 1+3i -1)) (test -1/2i (expt 1+i -2)) (test 1+2i (expt -3+4i 1/2)) (test -8i (expt -4 3/2)) (test -11-2i (expt -3+4i 3/2)) (test-error (expt 3/5+4/5i 10000000000)) (test -3.0+4.0i (expt 1.0+2.0i 2))
(test-close 1+1.7320508075688772i (expt -8 1/3)) (test-close +i (expt -1 0.5)) (test-close +2i (expt -4.0 0.5)) (test-close 0.20787957635076193 (expt +i +i)) (test-close 7.3890560989306495 (exp (* 2 1))) (test-close 0.7692389013639721+0.6389612763136348i (expt 2 +i)) (test-close -0.22251715680177264+0.10070913113607541i (expt 1+2i 1+2i))
(test 0 (expt 0 1+i)) (test 0.0 (expt 0.0 2+3i)) (test-error (expt 0 +i)) (test-error (expt 0 -1+i)) (test-error (expt 1+2i 100000000000000000000)) (test-error (expt 1+2i 10000000000)) (test-error (expt 'a +i)) (test-error (expt +i 'a))
;; exponentials and logarithms
(test-close -1 (exp (* +i pi))) (test-close 1.4686939399158851+2.2873552871788423i (exp 1+i)) (test-close (* +i pi) (log -1)) (test-close (make-rectangular (log 2) pi) (log -2.0)) (test-close 0.8047189562170503+1.1071487177940904i (log 1+2i)) (test-close (make-rectangular 0 (/ pi -2)) (log -i)) (test-close (- (* +i pi)) (log -1.0-0.0i)) (test-close (* +i pi) (log -1.0+0.0i)) (test-close -1 (log -i +i)) (test-close (/ (* +i pi) (log 2)) (log -1 2)) (test-near 921.0340371976183 (real-part (log (- (expt 10 400))))) (test-error (log 0)) (test-error (log 0 +i))
(test -inf.0 (log 0.0))
(test-near 3.141592653589793 (imag-part (log -0.0))) (test -inf.0 (real-part (log -0.0))) (test -inf.0 (log 0.0)) (test-near 3.141592653589793 (angle -0.0)) (test 0.0 (angle 0.0)) (test 0 (angle 0)) (test #t (real? (log 0.0))) (test #t (nan? (log +nan.0))) (test #t (nan? (angle +nan.0))) (test +inf.0 (log +inf.0)) (test-near 3.141592653589793 (imag-part (log -inf.0))) (test 0.0 (expt -0.0 2.5)) (test 0.0 (expt -0.0 2)) (test #t (nan? (log -nan.0)))
;; circular functions
(test-close 1.2984575814159773+0.6349639147847361i (sin 1+i)) (test-close 0.8337300251311491-0.9888977057628651i (cos 1+i)) (test-close 0.2717525853195118+1.0839233273386946i (tan 1+i)) (test-close +i (tan 3+400i))
(test-close 0.6662394324925153+1.0612750619050357i (asin 1+i)) (test-close 0.9045568943023814-1.0612750619050357i (acos 1+i)) (test-close 1.0172219678978514+0.4023594781085251i (atan 1+i))
(test-close (+ 2.0 (* 3.0 +i)) (sin (asin 2+3i))) (test-close 2-3i (cos (acos 2-3i))) (test-close -2+3i (tan (atan -2+3i))) (test-close 1e-10+1e-10i (atan 1e-10+1e-10i))
;; branch cuts, by the formulas of R7RS 6.2.6
(define (asin* z) (* -i (log (+ (* +i z) (sqrt (- 1 (* z z)))))))
(define (atan* z) (/ (- (log (+ 1 (* +i z))) (log (- 1 (* +i z)))) +2i))
(for-each (lambda (z) (test-close (asin* z) (asin z)) (test-close (- (/ pi 2) (asin* z)) (acos z))) (list 2 -2 3/2 -5 1/2 0 1.5 -1.5 +2i -2i 1+i -1+i 1-i -1-i))
(for-each (lambda (z) (test-close (atan* z) (atan z))) (list 2 -2 1/2 +2i -2i +1/2i -1/2i 1+i -1+i 1-i -1-i 3+4i))
(test-close 1.5707963267948966-1.3169578969248166i (asin 2)) (test-close -1.5707963267948966+1.3169578969248166i (asin -2.0)) (test-close +1.3169578969248166i (acos 2)) (test-close 3.141592653589793-1.3169578969248166i (acos -2))
(test-error (atan +i)) (test-error (atan -i)) (test 0.0+inf.0i (atan 0.0+1.0i)) (test 0.0-inf.0i (atan 0.0-1.0i)) (test-error (sin 'a)) (test-error (atan "x"))

;; text
(for-each (lambda (z text) (test text (number->string z)) (test #t (eqv? z (string->number text))) (test #t (eqv? z (read (open-input-string text)))) (test text (let ((out (open-output-string))) (write z out) (get-output-string out))))
          (list +i -i 1+i 1-2i 1/2-3/4i 1.5+2.0i 0.0+1.0i -0.0-0.0i +inf.0-inf.0i 1e100+1e-7i (make-rectangular 1.0 +inf.0) -12345678901234567890+98765432109876543210i)
          '("+i" "-i" "1+i" "1-2i" "1/2-3/4i" "1.5+2.0i" "0.0+1.0i" "-0.0-0.0i" "+inf.0-inf.0i" "1e100+1e-7i" "1.0+inf.0i" "-12345678901234567890+98765432109876543210i"))
(test "+nan.0+nan.0i" (number->string (make-rectangular +nan.0 +nan.0))) (test "ff-ai" (number->string 255-10i 16)) (test "101+11i" (number->string 5+3i 2)) (test "-7/10+1/7i" (number->string -7/8+1/7i 8)) (test "1.1+10.0i" (number->string 1.5+2.0i 2)) (test-error (number->string 1+i 20))
(test 255-10i (string->number "ff-ai" 16)) (test 5+3i (string->number "#b101+11i")) (test 1+2i (string->number "#e1.0+2.0i")) (test 1.0+2.0i (string->number "#i1+2i")) (test-close -1 (string->number "1@3.141592653589793")) (test 1 (string->number "1@0")) (test #f (string->number "1+2")) (test #f (string->number "1@2i")) (test #f (string->number "i")) (test #f (string->number "1+2i+3")) (test #f (string->number "1/0+i")) (test #f (string->number "+2j"))
(test '(+ i - -hi |+i| ->x) (read (open-input-string "(+ i - -hi |+i| ->x)"))) (test "|+i|" (let ((out (open-output-string))) (write '|+i| out) (get-output-string out)))
(test 3+i (eval '(+ 1+i 2) (environment '(scheme base)))) (test '#(+i 1@0) '#(+i 1)) (test -3+4i (eval (list '* 1+2i 1+2i) (environment '(scheme base))))

(finish)
