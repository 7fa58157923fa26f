;;; Lists so long that procedures search them in slices.
(import (scheme base) (scheme write) (scheme process-context))
(include "harness.scm")

(define many (make-list 200000 "y"))
(test '("x" 1) (member "x" (append many '("x" 1)))) (test #f (member "x" many)) (test '("x" . 1) (assoc "x" (append (map list many) '(("x" . 1))))) (test #f (assoc "x" (map list many)))
(test '((1) end) (member '(1) (append (map list many) '((1) end))))
(define around (append many '())) (set-cdr! (list-tail around 199999) around)
(test-error (member "x" around)) (test-error (member "x" (append many 'improper))) (test-error (assoc "x" (append (map list many) '(5))))

(finish)
