; Quicksort of 72 numbers, the second program of the paper's table 1. The paper gives neither its
; text nor its numbers; these are drawn at random once.
(define (smaller pivot numbers)
  (cond ((null? numbers) '())
        ((< (car numbers) pivot) (cons (car numbers) (smaller pivot (cdr numbers))))
        (else (smaller pivot (cdr numbers)))))

(define (others pivot numbers)
  (cond ((null? numbers) '())
        ((< (car numbers) pivot) (others pivot (cdr numbers)))
        (else (cons (car numbers) (others pivot (cdr numbers))))))

(define (quicksort numbers)
  (if (null? numbers)
      '()
      (append (quicksort (smaller (car numbers) (cdr numbers)))
              (cons (car numbers)
                    (quicksort (others (car numbers) (cdr numbers)))))))

(define numbers
  '(75 800 608 756 190 352 715 557 634 383 314 757
    734 701 613 132 999 719 711 351 238 389 146 648
     27 708 826 227 466 828  13 457  70 790 302  93
    517 325 743  18 893 426 904 260 275 355 379 225
    382 872 499 650 254 358 607 509 713 189 307 964
    417 927 867 585 343 157 464 976 895 221  42  56))

(display (quicksort numbers))
(newline)
