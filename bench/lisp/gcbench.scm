;;; Trees that die young beside one that lives, after Ellis, Kovac and Boehm: the collector.
;;; Usage: PROG [COUNT]; runs COUNT times, checks the last result, prints one JSON line.
(import (scheme base) (scheme write) (scheme time) (scheme process-context))

(define-record-type node (make-node left right) node? (left node-left) (right node-right))

(define (make-tree depth)
  (if (<= depth 0)
      (make-node #f #f)
      (make-node (make-tree (- depth 1)) (make-tree (- depth 1)))))

(define (tree-size tree)
  (if (node-left tree)
      (+ 1 (tree-size (node-left tree)) (tree-size (node-right tree)))
      1))

;; As many trees of each depth as keep the number of nodes the same.
(define (gcbench depth-max)
  (let ((long-lived (make-tree depth-max))
        (nodes-each (* 2 (expt 2 (+ depth-max 1)))))
    (let each-depth ((depth 4) (nodes 0))
      (if (> depth depth-max)
          (+ nodes (tree-size long-lived))
          (let ((trees (quotient nodes-each (expt 2 (+ depth 1)))))
            (let each-tree ((i 0) (nodes nodes))
              (if (= i trees)
                  (each-depth (+ depth 2) nodes)
                  (each-tree (+ i 1) (+ nodes (tree-size (make-tree depth)))))))))))

;; Inputs lie in a vector, so that no compiler computes the answer before the clock starts.
(define inputs (vector 14))
(define (input i) (vector-ref inputs i))
(define (work) (gcbench (input 0)))
(define expected 423253)

(define count
  (let ((arguments (cdr (command-line))))
    (if (null? arguments) 20 (string->number (car arguments)))))
(define start (current-jiffy))
(define result (do ((i 0 (+ i 1)) (result expected (work))) ((= i count) result)))
(define seconds (/ (- (current-jiffy) start) (jiffies-per-second)))
(unless (equal? result expected) (error "wrong result" result expected))
(display "{\"bench\":\"gcbench\",\"value\":")
(display (if (= count 0) 0 (/ (round (* 1e6 1e3 (/ seconds count))) 1e3)))
(display ",\"unit\":\"us\",\"runs\":")
(display count)
(display "}")
(newline)
