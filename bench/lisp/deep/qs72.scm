; Quicksort of 72 numbers, the second program of the paper's table 1. The paper gives neither its
; text nor its numbers; these are drawn at random once.
(define (partition pivot rest small large)
  (cond ((null? rest)
         (append (quicksort small) (cons pivot (quicksort large))))
        ((< (car rest) pivot)
         (partition pivot (cdr rest) (cons (car rest) small) large))
        (else
         (partition pivot (cdr rest) small (cons (car rest) large)))))

(define (quicksort numbers)
  (if (null? numbers)
      '()
      (partition (car numbers) (cdr numbers) '() '())))

(define numbers
  '(75 800 608 756 190 352 715 557 634 383 314 757
    734 701 613 132 999 719 711 351 238 389 146 648
     27 708 826 227 466 828  13 457  70 790 302  93
    517 325 743  18 893 426 904 260 275 355 379 225
    382 872 499 650 254 358 607 509 713 189 307 964
    417 927 867 585 343 157 464 976 895 221  42  56))

; One sort takes a tenth of a millisecond. Ten, so that clock and processor caches settle.
(define (repeat count)
  (if (> count 1)
      (begin (quicksort numbers) (repeat (- count 1)))
      (quicksort numbers)))

(display (repeat 10))
(newline)
