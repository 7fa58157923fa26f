;;; The least program: what starting costs.
(import (scheme base) (scheme write))
(display "started")
(newline)
