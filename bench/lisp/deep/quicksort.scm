;;; QuickSort of 72 numbers, paper 4, table 1 and figure 3: for the deep-binding engine.
(define below
  (lambda (pivot numbers)
    (cond ((null? numbers) (quote ()))
          ((< (car numbers) pivot) (cons (car numbers) (below pivot (cdr numbers))))
          (else (below pivot (cdr numbers))))))

(define from
  (lambda (pivot numbers)
    (cond ((null? numbers) (quote ()))
          ((< (car numbers) pivot) (from pivot (cdr numbers)))
          (else (cons (car numbers) (from pivot (cdr numbers)))))))

(define join
  (lambda (front back)
    (cond ((null? front) back)
          (else (cons (car front) (join (cdr front) back))))))

(define quicksort
  (lambda (numbers)
    (cond ((null? numbers) (quote ()))
          (else (join (quicksort (below (car numbers) (cdr numbers)))
                      (cons (car numbers)
                            (quicksort (from (car numbers) (cdr numbers)))))))))

(display
 (quicksort
  (quote
   (16838 5758 10113 17515 31051 5627 23010 7419 16212 4086 2749 12767
    9084 12060 32225 17543 25089 21183 25137 25566 26966 4978 20495 10311
    11367 30054 17031 13145 19882 25736 30524 28505 28394 22102 24851 19067
    12754 11653 6561 27096 13628 15188 32085 4143 6967 31406 24165 13403
    25562 24834 31353 920 10444 24803 7962 19318 1422 31327 10457 1945
    14479 29983 18751 3894 18670 8259 16248 7757 15629 13306 28606 13990))))
(newline)
