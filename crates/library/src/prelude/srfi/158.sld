;;; SRFI 158: generators and accumulators. Complete.
;;;
;;; A generator is a procedure without arguments that returns the next value, and after the last one
;;; always an end-of-file object. An accumulator is a procedure that accepts a value, and returns
;;; the accumulated result when it gets an end-of-file object.

(define-library (srfi 158)
  (import (scheme base) (scheme case-lambda))
  (export
   generator circular-generator make-iota-generator make-range-generator make-coroutine-generator
   list->generator vector->generator reverse-vector->generator string->generator
   bytevector->generator make-for-each-generator make-unfold-generator
   gcons* gappend gmap gcombine gfilter gremove gstate-filter ggroup gmerge gtake gdrop gtake-while
   gdrop-while gdelete gdelete-neighbor-dups gindex gselect gflatten
   generator->list generator->reverse-list generator->vector generator->vector! generator->string
   generator-fold generator-map->list generator-for-each generator-find generator-count
   generator-any generator-every generator-unfold
   make-accumulator count-accumulator list-accumulator reverse-list-accumulator vector-accumulator
   reverse-vector-accumulator vector-accumulator! string-accumulator bytevector-accumulator
   bytevector-accumulator! sum-accumulator product-accumulator)
  (begin

    (define end (eof-object))
    (define (optional list default) (if (pair? list) (car list) default))

    ;; Generators of data.

    (define (list->generator list)
      (lambda ()
        (if (null? list)
            end
            (let ((next (car list)))
              (set! list (cdr list))
              next))))

    (define (generator . values) (list->generator values))

    (define (circular-generator first . rest)
      (let* ((all (cons first rest)) (list all))
        (lambda ()
          (let ((next (car list)))
            (set! list (if (null? (cdr list)) all (cdr list)))
            next))))

    (define make-iota-generator
      (case-lambda
        ((count) (make-iota-generator count 0 1))
        ((count start) (make-iota-generator count start 1))
        ((count start step)
         (let ((i 0))
           (lambda ()
             (if (< i count)
                 (let ((next (+ start (* i step))))
                   (set! i (+ i 1))
                   next)
                 end))))))

    (define make-range-generator
      (case-lambda
        ((start) (let ((next (- start 1))) (lambda () (set! next (+ next 1)) next)))
        ((start limit) (make-range-generator start limit 1))
        ((start limit step)
         (lambda ()
           (if (if (< step 0) (> start limit) (< start limit))
               (let ((next start))
                 (set! start (+ start step))
                 next)
               end)))))

    ;; (body yield) alternates with the caller of the generator: each yield passes one value to it.
    (define (make-coroutine-generator body)
      (define return #f)
      (define resume #f)
      (define (yield value)
        (call/cc (lambda (k) (set! resume k) (return value))))
      (lambda ()
        (call/cc
         (lambda (k)
           (set! return k)
           (if resume
               (resume #t)
               (begin
                 (body yield)
                 (set! resume (lambda (_) (return end)))
                 (return end)))))))

    (define (indexed ref length)
      (lambda (sequence . range)
        (let ((i (optional range 0))
              (end-at (optional (if (pair? range) (cdr range) '()) (length sequence))))
          (if (not (<= 0 i end-at (length sequence)))
              (error "not a range of the sequence" sequence i end-at))
          (lambda ()
            (if (< i end-at)
                (let ((next (ref sequence i)))
                  (set! i (+ i 1))
                  next)
                end)))))
    (define vector->generator (indexed vector-ref vector-length))
    (define string->generator (indexed string-ref string-length))
    (define bytevector->generator (indexed bytevector-u8-ref bytevector-length))
    (define (reverse-vector->generator vector . range)
      (list->generator (reverse (apply vector->list vector range))))

    ;; As in the document, (make-for-each-generator for-each collection); as in its implementation,
    ;; with the procedure alone, it returns a constructor of generators.
    (define make-for-each-generator
      (case-lambda
        ((for-each collection)
         (make-coroutine-generator (lambda (yield) (for-each yield collection))))
        ((for-each)
         (lambda (collection) (make-for-each-generator for-each collection)))))

    (define (make-unfold-generator stop? f successor seed)
      (lambda ()
        (if (stop? seed)
            end
            (let ((next (f seed)))
              (set! seed (successor seed))
              next))))

    ;; Generators of generators.

    (define gcons*
      (case-lambda
        ((g) g)
        ((value . rest)
         (let ((first? #t) (rest (apply gcons* rest)))
           (lambda () (if first? (begin (set! first? #f) value) (rest)))))))

    (define (gappend . generators)
      (lambda ()
        (let loop ()
          (if (null? generators)
              end
              (let ((next ((car generators))))
                (if (eof-object? next)
                    (begin (set! generators (cdr generators)) (loop))
                    next))))))

    (define (gflatten generators)
      (let ((g #f))
        (lambda ()
          (let loop ()
            (let ((next (if g (g) end)))
              (if (not (eof-object? next))
                  next
                  (let ((following (generators)))
                    (cond ((eof-object? following) (set! g #f) end)
                          (else (set! g following) (loop))))))))))

    (define (any-ended? values)
      (and (pair? values) (or (eof-object? (car values)) (any-ended? (cdr values)))))

    (define (gmap f g . generators)
      (if (null? generators)
          (lambda () (let ((next (g))) (if (eof-object? next) end (f next))))
          (lambda ()
            (let ((values (map (lambda (g) (g)) (cons g generators))))
              (if (any-ended? values) end (apply f values))))))

    (define (gcombine f seed g . generators)
      (lambda ()
        (let ((each (map (lambda (g) (g)) (cons g generators))))
          (if (any-ended? each)
              end
              (let-values (((value state) (apply f (append each (list seed)))))
                (set! seed state)
                value)))))

    (define (gfilter test g)
      (lambda ()
        (let loop ()
          (let ((next (g)))
            (if (or (eof-object? next) (test next)) next (loop))))))
    (define (gremove test g) (gfilter (lambda (value) (not (test value))) g))

    (define (gstate-filter f seed g)
      (lambda ()
        (let loop ()
          (let ((next (g)))
            (if (eof-object? next)
                next
                (let-values (((yes state) (f next seed)))
                  (set! seed state)
                  (if yes next (loop))))))))

    (define (ggroup g size . padding)
      (lambda ()
        (let loop ((i 0) (values '()))
          (if (= i size)
              (reverse values)
              (let ((next (g)))
                (cond ((not (eof-object? next)) (loop (+ i 1) (cons next values)))
                      ((= i 0) end)
                      ((null? padding) (reverse values))
                      (else (append (reverse values) (make-list (- size i) (car padding))))))))))

    (define gmerge
      (case-lambda
        ((before? g) g)
        ((before? a b)
         (let ((x (a)) (y (b)))
           (lambda ()
             (cond ((and (eof-object? x) (eof-object? y)) end)
                   ((or (eof-object? x) (and (not (eof-object? y)) (before? y x)))
                    (let ((next y)) (set! y (b)) next))
                   (else (let ((next x)) (set! x (a)) next))))))
        ((before? a b . rest) (apply gmerge before? (gmerge before? a b) rest))))

    (define (gtake g count . padding)
      (lambda ()
        (if (<= count 0)
            end
            (let ((next (g)))
              (set! count (- count 1))
              (if (and (eof-object? next) (pair? padding)) (car padding) next)))))

    (define (gdrop g count)
      (lambda ()
        (let loop ()
          (if (<= count 0)
              (g)
              (begin
                (set! count (- count 1))
                (if (eof-object? (g)) (begin (set! count 0) end) (loop)))))))

    (define (gtake-while test g)
      (let ((over? #f))
        (lambda ()
          (let ((next (if over? end (g))))
            (if (or (eof-object? next) (not (test next)))
                (begin (set! over? #t) end)
                next)))))

    (define (gdrop-while test g)
      (let ((begun? #f))
        (lambda ()
          (if begun?
              (g)
              (let loop ()
                (let ((next (g)))
                  (if (and (not (eof-object? next)) (test next))
                      (loop)
                      (begin (set! begun? #t) next))))))))

    (define (gdelete item g . same)
      (let ((same? (optional same equal?)))
        (gremove (lambda (value) (same? item value)) g)))

    (define (gdelete-neighbor-dups g . same)
      (let ((same? (optional same equal?)) (last end))
        (lambda ()
          (let loop ()
            (let ((next (g)))
              (cond ((eof-object? next) next)
                    ((and (not (eof-object? last)) (same? last next)) (loop))
                    (else (set! last next) next)))))))

    (define (gindex values indices)
      (let ((at -1))
        (lambda ()
          (let ((index (indices)))
            (if (eof-object? index)
                end
                (begin
                  (if (not (and (exact-integer? index) (> index at)))
                      (error "gindex: the indices must grow" index))
                  (let loop ()
                    (let ((next (values)))
                      (set! at (+ at 1))
                      (if (or (eof-object? next) (= at index)) next (loop))))))))))

    (define (gselect values truths)
      (lambda ()
        (let loop ()
          (let ((next (values)) (truth (truths)))
            (cond ((or (eof-object? next) (eof-object? truth)) end)
                  (truth next)
                  (else (loop)))))))

    ;; Consumers.

    (define (generator-fold f seed g . generators)
      (define (next) (if (null? generators) (list (g)) (map (lambda (g) (g)) (cons g generators))))
      (let loop ((state seed))
        (let ((values (next)))
          (if (any-ended? values)
              state
              (loop (apply f (append values (list state))))))))

    (define (generator->reverse-list g . count)
      (let ((g (if (null? count) g (gtake g (car count)))))
        (let loop ((list '()))
          (let ((next (g)))
            (if (eof-object? next) list (loop (cons next list)))))))
    (define (generator->list g . count) (reverse (apply generator->reverse-list g count)))
    (define (generator->vector g . count) (list->vector (apply generator->list g count)))
    (define (generator->string g . count) (list->string (apply generator->list g count)))

    ;; Returns how many values were put into the vector.
    (define (generator->vector! vector at g)
      (let loop ((i at))
        (if (= i (vector-length vector))
            (- i at)
            (let ((next (g)))
              (if (eof-object? next)
                  (- i at)
                  (begin (vector-set! vector i next) (loop (+ i 1))))))))

    (define (generator-map->list f g . generators) (generator->list (apply gmap f g generators)))

    (define (generator-for-each f g . generators)
      (apply generator-fold
             (lambda values (apply f (reverse (cdr (reverse values)))) #f)
             #f g generators))

    (define (generator-find test g)
      (let loop ()
        (let ((next (g)))
          (cond ((eof-object? next) #f) ((test next) next) (else (loop))))))

    (define (generator-count test g)
      (generator-fold (lambda (value count) (if (test value) (+ count 1) count)) 0 g))

    (define (generator-any test g)
      (let loop ()
        (let ((next (g)))
          (if (eof-object? next) #f (or (test next) (loop))))))

    (define (generator-every test g)
      (let loop ((last #t))
        (let ((next (g)))
          (if (eof-object? next)
              last
              (let ((value (test next))) (and value (loop value)))))))

    (define (generator-unfold g unfold . arguments)
      (apply unfold eof-object? (lambda (value) value) (lambda (value) (g)) (g) arguments))

    ;; Accumulators.

    (define (make-accumulator kons knil finish)
      (let ((state knil))
        (lambda (value)
          (if (eof-object? value)
              (finish state)
              (set! state (kons value state))))))

    (define (count-accumulator) (make-accumulator (lambda (_ count) (+ count 1)) 0 values))
    (define (list-accumulator) (make-accumulator cons '() reverse))
    (define (reverse-list-accumulator) (make-accumulator cons '() values))
    (define (vector-accumulator)
      (make-accumulator cons '() (lambda (list) (list->vector (reverse list)))))
    (define (reverse-vector-accumulator) (make-accumulator cons '() list->vector))
    (define (string-accumulator)
      (make-accumulator cons '() (lambda (list) (list->string (reverse list)))))
    (define (bytevector-accumulator)
      (make-accumulator cons '() (lambda (list) (apply bytevector (reverse list)))))
    (define (sum-accumulator) (make-accumulator + 0 values))
    (define (product-accumulator) (make-accumulator * 1 values))

    (define (filling set length)
      (lambda (sequence at)
        (if (not (<= 0 at (length sequence)))
            (error "not an index of the sequence" sequence at))
        (lambda (value)
          (cond ((eof-object? value) sequence)
                ((< at (length sequence))
                 (set sequence at value)
                 (set! at (+ at 1)))
                (else (error "the sequence is full" sequence))))))
    (define vector-accumulator! (filling vector-set! vector-length))
    (define bytevector-accumulator! (filling bytevector-u8-set! bytevector-length))))
