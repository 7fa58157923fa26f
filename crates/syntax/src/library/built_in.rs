//! The built-in libraries: their names and their exports from the system environment. An empty list
//! exports all of it.

/// Each library's written name and its exports, separated by spaces.
pub const LIBRARIES: &[(&str, &[&str])] = &[
    ("(kyocho)", &[]),
    ("(kyocho gate)", &["gate-call gate-close! gate-connect gate-serve gate?"]),
    ("(kyocho guardian)", &["make-guardian"]),
    ("(kyocho policy)", &["install-policy! policies remove-policy! thread-number"]),
    (
        "(kyocho socket)",
        &[
            "socket-accept socket-address socket-close! socket-end! socket-input-port",
            "socket-output-port socket? tcp-connect tcp-listen unix-connect unix-listen",
        ],
    ),
    ("(kyocho tls)", &["tls-connect tls-listen"]),
    ("(scheme base)", BASE),
    ("(scheme case-lambda)", &["case-lambda"]),
    ("(scheme char)", CHAR),
    ("(scheme complex)", &["angle imag-part magnitude make-polar make-rectangular real-part"]),
    ("(scheme cxr)", CXR),
    ("(scheme eval)", &["environment eval"]),
    ("(scheme file)", FILE),
    ("(scheme inexact)", INEXACT),
    ("(scheme lazy)", &["delay delay-force force make-promise promise?"]),
    ("(scheme load)", &["load"]),
    ("(scheme process-context)", PROCESS_CONTEXT),
    ("(scheme read)", &["read"]),
    ("(scheme repl)", &["interaction-environment"]),
    ("(scheme time)", &["current-jiffy current-second jiffies-per-second"]),
    ("(scheme write)", &["display write write-shared write-simple"]),
    ("(srfi 0)", &["cond-expand"]),
    ("(srfi 1)", SRFI_1),
    ("(srfi 2)", &["and-let*"]),
    ("(srfi 6)", &["get-output-string open-input-string open-output-string"]),
    ("(srfi 8)", &["receive"]),
    ("(srfi 9)", &["define-record-type"]),
    ("(srfi 11)", &["let-values let*-values"]),
    ("(srfi 16)", &["case-lambda"]),
    ("(srfi 18)", SRFI_18),
    ("(srfi 23)", &["error"]),
    ("(srfi 26)", &["cut cute"]),
    ("(srfi 30)", &[""]),
    ("(srfi 31)", &["rec"]),
    ("(srfi 39)", &["make-parameter parameterize"]),
    ("(srfi 62)", &[""]),
    ("(srfi 69)", SRFI_69),
    ("(srfi 87)", &["case => else"]),
    (
        "(srfi 124)",
        &[
            "ephemeron-broken? ephemeron-datum ephemeron-key ephemeron? make-ephemeron",
            "reference-barrier",
        ],
    ),
    ("(srfi 125)", SRFI_125),
    // Last, so that a search for the library of a name finds the others first.
    ("(scheme r5rs)", R5RS),
];

const BASE: &[&str] = &[
    "* + - ... / < <= = => > >= _ abs and append apply assoc assq assv begin binary-port?",
    "boolean=? boolean? bytevector bytevector-append bytevector-copy bytevector-copy!",
    "bytevector-length bytevector-u8-ref bytevector-u8-set! bytevector? caar cadr",
    "call-with-current-continuation call-with-port call-with-values call/cc car case cdar cddr cdr",
    "ceiling char->integer char-ready? char<=? char<? char=? char>=? char>? char?",
    "close-input-port close-output-port close-port complex? cond cond-expand cons",
    "current-error-port current-input-port current-output-port define define-record-type",
    "define-syntax define-values denominator do dynamic-wind else eof-object eof-object? eq? equal?",
    "eqv? error error-object-irritants error-object-message error-object? even? exact",
    "exact-integer-sqrt exact-integer? exact? expt features file-error? floor floor-quotient",
    "floor-remainder floor/ flush-output-port for-each gcd get-output-bytevector",
    "get-output-string guard if include include-ci inexact inexact? input-port-open? input-port?",
    "integer->char integer? lambda lcm length let let* let*-values let-syntax let-values letrec",
    "letrec* letrec-syntax list list->string list->vector list-copy list-ref list-set! list-tail",
    "list? make-bytevector make-list make-parameter make-string make-vector map max member memq",
    "memv min modulo negative? newline not null? number->string number? numerator odd?",
    "open-input-bytevector open-input-string open-output-bytevector open-output-string or",
    "output-port-open? output-port? pair? parameterize peek-char peek-u8 port? positive? procedure?",
    "quasiquote quote quotient raise raise-continuable rational? rationalize read-bytevector",
    "read-bytevector! read-char read-error? read-line read-string read-u8 real? remainder reverse",
    "round set! set-car! set-cdr! square string string->list string->number string->symbol",
    "string->utf8 string->vector string-append string-copy string-copy! string-fill!",
    "string-for-each string-length string-map string-ref string-set! string<=? string<? string=?",
    "string>=? string>? string? substring symbol->string symbol=? symbol? syntax-error",
    "syntax-rules textual-port? truncate truncate-quotient truncate-remainder truncate/ u8-ready?",
    "unless unquote unquote-splicing utf8->string values vector vector->list vector->string",
    "vector-append vector-copy vector-copy! vector-fill! vector-for-each vector-length vector-map",
    "vector-ref vector-set! vector? when with-exception-handler write-bytevector write-char",
    "write-string write-u8 zero?",
];

const CHAR: &[&str] = &[
    "char-alphabetic? char-ci<=? char-ci<? char-ci=? char-ci>=? char-ci>? char-downcase",
    "char-foldcase char-lower-case? char-numeric? char-upcase char-upper-case? char-whitespace?",
    "digit-value string-ci<=? string-ci<? string-ci=? string-ci>=? string-ci>? string-downcase",
    "string-foldcase string-upcase",
];

const CXR: &[&str] = &[
    "caaaar caaadr caaar caadar caaddr caadr cadaar cadadr cadar caddar cadddr caddr cdaaar",
    "cdaadr cdaar cdadar cdaddr cdadr cddaar cddadr cddar cdddar cddddr cdddr",
];

const FILE: &[&str] = &[
    "call-with-input-file call-with-output-file delete-file file-exists? open-binary-input-file",
    "open-binary-output-file open-input-file open-output-file with-input-from-file",
    "with-output-to-file",
];

const INEXACT: &[&str] = &["acos asin atan cos exp finite? infinite? log nan? sin sqrt tan"];

const PROCESS_CONTEXT: &[&str] =
    &["command-line emergency-exit exit get-environment-variable get-environment-variables"];

const SRFI_1: &[&str] = &[
    "alist-cons alist-copy alist-delete alist-delete! any append append! append-map append-map!",
    "append-reverse append-reverse! assoc assq assv break break! caaaar caaadr caaar caadar",
    "caaddr caadr caar cadaar cadadr cadar caddar cadddr caddr cadr car car+cdr cdaaar cdaadr",
    "cdaar cdadar cdaddr cdadr cdar cddaar cddadr cddar cdddar cddddr cdddr cddr cdr",
    "circular-list circular-list? concatenate concatenate! cons cons* count delete delete!",
    "delete-duplicates delete-duplicates! dotted-list? drop drop-right drop-right! drop-while",
    "eighth every fifth filter filter! filter-map find find-tail first fold fold-right for-each",
    "fourth iota last last-pair length length+ list list-copy list-index list-ref list-tabulate",
    "list= lset-adjoin lset-diff+intersection lset-diff+intersection! lset-difference",
    "lset-difference! lset-intersection lset-intersection! lset-union lset-union! lset-xor",
    "lset-xor! lset<= lset= make-list map map! map-in-order member memq memv ninth not-pair?",
    "null-list? null? pair-fold pair-fold-right pair-for-each pair? partition partition!",
    "proper-list? reduce reduce-right remove remove! reverse reverse! second set-car! set-cdr!",
    "seventh sixth span span! split-at split-at! take take! take-right take-while take-while!",
    "tenth third unfold unfold-right unzip1 unzip2 unzip3 unzip4 unzip5 xcons zip",
];

const SRFI_18: &[&str] = &[
    "abandoned-mutex-exception? condition-variable-broadcast! condition-variable-name",
    "condition-variable-signal! condition-variable-specific condition-variable-specific-set!",
    "condition-variable? current-exception-handler current-thread current-time",
    "join-timeout-exception? make-condition-variable make-mutex make-thread mutex-lock! mutex-name",
    "mutex-specific mutex-specific-set! mutex-state mutex-unlock! mutex? raise seconds->time",
    "terminated-thread-exception? thread-join! thread-name thread-sleep! thread-specific",
    "thread-specific-set! thread-start! thread-terminate! thread-yield! thread? time->seconds",
    "time? uncaught-exception-reason uncaught-exception? with-exception-handler",
];

const SRFI_69: &[&str] = &[
    "alist->hash-table hash hash-by-identity hash-table->alist hash-table-contains?",
    "hash-table-copy hash-table-delete! hash-table-equivalence-function hash-table-exists?",
    "hash-table-fold hash-table-hash-function hash-table-keys hash-table-merge! hash-table-ref",
    "hash-table-ref/default hash-table-set! hash-table-size hash-table-update!",
    "hash-table-update!/default hash-table-values hash-table-walk hash-table? make-hash-table",
    "string-ci-hash string-hash",
];

const SRFI_125: &[&str] = &[
    "alist->hash-table hash hash-by-identity hash-table hash-table->alist hash-table-clear!",
    "hash-table-contains? hash-table-copy hash-table-count hash-table-delete!",
    "hash-table-difference! hash-table-empty-copy hash-table-empty? hash-table-entries",
    "hash-table-equivalence-function hash-table-exists? hash-table-find hash-table-fold",
    "hash-table-for-each hash-table-hash-function hash-table-intern! hash-table-intersection!",
    "hash-table-keys hash-table-map hash-table-map! hash-table-map->list hash-table-merge!",
    "hash-table-mutable? hash-table-pop! hash-table-prune! hash-table-ref hash-table-ref/default",
    "hash-table-set! hash-table-size hash-table-unfold hash-table-union! hash-table-update!",
    "hash-table-update!/default hash-table-values hash-table-walk hash-table-xor! hash-table=?",
    "hash-table? make-hash-table string-ci-hash string-hash",
];

const R5RS: &[&str] = &[
    "* + - ... / < <= = => > >= _ abs acos and angle append apply asin assoc assq assv atan begin",
    "boolean? caaaar caaadr caaar caadar caaddr caadr caar cadaar cadadr cadar caddar cadddr",
    "caddr cadr call-with-current-continuation call-with-input-file call-with-output-file",
    "call-with-values car case cdaaar cdaadr cdaar cdadar cdaddr cdadr cdar cddaar cddadr cddar",
    "cdddar cddddr cdddr cddr cdr ceiling char->integer char-alphabetic? char-ci<=? char-ci<?",
    "char-ci=? char-ci>=? char-ci>? char-downcase char-lower-case? char-numeric? char-ready?",
    "char-upcase char-upper-case? char-whitespace? char<=? char<? char=? char>=? char>? char?",
    "close-input-port close-output-port complex? cond cons cos current-input-port",
    "current-output-port define define-syntax delay denominator display do dynamic-wind else",
    "eof-object? eq? equal? eqv? eval even? exact->inexact exact? exp expt floor for-each force",
    "gcd if imag-part inexact->exact inexact? input-port? integer->char integer?",
    "interaction-environment lambda lcm length let let* let-syntax letrec letrec-syntax list",
    "list->string list->vector list-ref list-tail list? load log magnitude make-polar",
    "make-rectangular make-string make-vector map max member memq memv min modulo negative?",
    "newline not null-environment null? number->string number? numerator odd? open-input-file",
    "open-output-file or output-port? pair? peek-char positive? procedure? quasiquote quote",
    "quotient rational? rationalize read read-char real-part real? remainder reverse round",
    "scheme-report-environment set! set-car! set-cdr! sin sqrt string string->list string->number",
    "string->symbol string-append string-ci<=? string-ci<? string-ci=? string-ci>=? string-ci>?",
    "string-copy string-fill! string-length string-ref string-set! string<=? string<? string=?",
    "string>=? string>? string? substring symbol->string symbol? syntax-rules tan truncate",
    "unquote unquote-splicing values vector vector->list vector-fill! vector-length vector-ref",
    "vector-set! vector? with-input-from-file with-output-to-file write write-char zero?",
];
