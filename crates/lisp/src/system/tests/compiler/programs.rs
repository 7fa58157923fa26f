//! Random programs over small integers: every binding form, assignments, loops, and local
//! procedures that call each other and outlive the calls that created them. All programs terminate.

/// A generator of programs. The same seed yields the same programs.
pub(super) struct Programs {
    state: u64,
    names: u32,
}

#[derive(Clone, Default)]
struct Scope {
    numbers: Vec<String>,
    /// Procedures of one argument that terminate.
    procedures: Vec<String>,
}

impl Scope {
    fn with(&self, names: &[&String]) -> Self {
        let mut scope = self.clone();
        scope.numbers.extend(names.iter().map(|name| (*name).clone()));
        scope
    }
}

impl Programs {
    pub(super) fn new(seed: u64) -> Self {
        Self { state: seed | 1, names: 0 }
    }

    /// One complete program.
    pub(super) fn expression(&mut self) -> String {
        self.number(6, &Scope::default())
    }

    fn below(&mut self, n: u64) -> u64 {
        // xorshift64*
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        (self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % n
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("v{}", self.names)
    }

    fn leaf(&mut self, scope: &Scope) -> String {
        let count = scope.numbers.len() as u64;
        if count > 0 && self.below(4) > 0 {
            return scope.numbers[self.below(count) as usize].clone();
        }
        (self.below(40) as i64 - 10).to_string()
    }

    fn test(&mut self, depth: u32, scope: &Scope) -> String {
        let d = depth.saturating_sub(1);
        let choices = if depth == 0 { 2 } else { 7 };
        match self.below(choices) {
            0 => format!("(< {} {})", self.number(d, scope), self.number(d, scope)),
            1 => format!("(= {} {})", self.number(d, scope), self.leaf(scope)),
            2 => format!("(not {})", self.test(d, scope)),
            3 => format!("(and {} {})", self.test(d, scope), self.test(d, scope)),
            4 => format!("(or {} {})", self.test(d, scope), self.test(d, scope)),
            5 => {
                let [a, b, c] = [self.test(d, scope), self.test(d, scope), self.test(d, scope)];
                format!("(if {a} {b} {c})")
            }
            _ => format!("(>= {} {})", self.leaf(scope), self.number(d, scope)),
        }
    }

    fn number(&mut self, depth: u32, scope: &Scope) -> String {
        if depth == 0 {
            return self.leaf(scope);
        }
        let d = depth - 1;
        match self.below(14) {
            0 => self.leaf(scope),
            1 => format!("(+ {} {})", self.number(d, scope), self.number(d, scope)),
            2 => format!("(- {} {} 3)", self.number(d, scope), self.number(d, scope)),
            3 => format!("(remainder (* {} {}) 97)", self.number(d, scope), self.number(d, scope)),
            4 => {
                let test = self.test(d, scope);
                format!("(if {test} {} {})", self.number(d, scope), self.number(d, scope))
            }
            5 => self.let_form(d, scope),
            6 => self.assignment(d, scope),
            7 => self.loop_form(d, scope),
            8 => self.nested_loops(d, scope),
            9 => self.mutual(d, scope),
            10 => self.procedure(d, scope),
            11 => self.counter(d, scope),
            12 => self.group(d, scope),
            _ => self.call(d, scope),
        }
    }

    fn let_form(&mut self, d: u32, scope: &Scope) -> String {
        let (a, b) = (self.name(), self.name());
        let (first, second) = (self.number(d, scope), self.number(d, scope));
        let body = self.number(d, &scope.with(&[&a, &b]));
        format!("(let (({a} {first}) ({b} {second})) {body})")
    }

    fn assignment(&mut self, d: u32, scope: &Scope) -> String {
        let a = self.name();
        let inner = scope.with(&[&a]);
        let (init, new) = (self.number(d, scope), self.number(d, &inner));
        let (test, body) = (self.test(d, &inner), self.number(d, &inner));
        format!("(let (({a} {init})) (if {test} (set! {a} {new})) {body})")
    }

    fn loop_form(&mut self, d: u32, scope: &Scope) -> String {
        let [l, i, a, b] = [self.name(), self.name(), self.name(), self.name()];
        let inner = scope.with(&[&i, &a, &b]);
        let (x, y) = (self.number(d, &inner), self.number(d, &inner));
        let (count, first, last) = (self.below(4), self.number(d, scope), self.number(d, &inner));
        format!(
            "(let {l} (({i} {count}) ({a} {first}) ({b} 1))
               (if (< {i} 1) {last} ({l} (- {i} 1) (remainder {x} 1000) (remainder {y} 1000))))"
        )
    }

    fn nested_loops(&mut self, d: u32, scope: &Scope) -> String {
        let [outer, i, a, inner_loop, j] =
            [self.name(), self.name(), self.name(), self.name(), self.name()];
        let inner = scope.with(&[&i, &a, &j]);
        let step = self.number(d.saturating_sub(1), &inner);
        format!(
            "(let {outer} (({i} 2) ({a} 0))
               (if (= {i} 0) {a}
                   (let {inner_loop} (({j} 2))
                     (if (= {j} 0) ({outer} (- {i} 1) (remainder (+ {a} {step}) 1000))
                         ({inner_loop} (- {j} 1))))))"
        )
    }

    fn mutual(&mut self, d: u32, scope: &Scope) -> String {
        let [f, g, n, x] = [self.name(), self.name(), self.name(), self.name()];
        let inner = scope.with(&[&n, &x]);
        let (one, two) = (self.number(d, &inner), self.number(d, &inner));
        let start = self.number(d, scope);
        // Sometimes add a call that is not in tail position, so that the two are not labels.
        let wrap = if self.below(2) == 0 { "" } else { "(+ 1 " };
        let close = if wrap.is_empty() { "" } else { ")" };
        format!(
            "(letrec (({f} (lambda ({n} {x}) (if (< {n} 1) {x} {wrap}({g} (- {n} 1) (remainder {one} 100)){close})))
                      ({g} (lambda ({n} {x}) (if (< {n} 1) {two} ({f} (- {n} 1) (+ {x} 1))))))
               ({f} {} {start}))",
            self.below(4)
        )
    }

    /// Procedures of one `letrec*` that refer to each other and to themselves in any order, with
    /// values and assigned variables between them.
    fn group(&mut self, d: u32, scope: &Scope) -> String {
        let procedures: Vec<_> = (0..=self.below(3)).map(|_| self.name()).collect();
        let count = procedures.len() as u64;
        let mut inner = scope.clone();
        let mut bindings = String::new();
        for procedure in &procedures {
            if self.below(2) == 0 {
                let (value, init) = (self.name(), self.number(d, &inner));
                bindings.push_str(&format!("({value} {init})"));
                inner = inner.with(&[&value]);
            }
            let [n, x] = [self.name(), self.name()];
            let last = self.number(d.saturating_sub(1), &inner.with(&[&n, &x]));
            let next = &procedures[self.below(count) as usize];
            let called = match self.below(4) {
                0 => format!("(+ 1 ({next} (- {n} 1) {x}))"),
                1 => format!("((lambda (p) (p (- {n} 1) (+ {x} 1))) {next})"),
                _ => format!("({next} (- {n} 1) (remainder (+ {x} 7) 100))"),
            };
            bindings.push_str(&format!(
                "({procedure} (lambda ({n} {x}) (if (< {n} 1) {last} {called})))"
            ));
        }
        let first = &procedures[self.below(count) as usize];
        let mutated = &procedures[self.below(count) as usize];
        let assign =
            if self.below(4) == 0 { format!("(set! {mutated} {mutated})") } else { String::new() };
        let (turns, start) = (self.below(5), self.number(d, scope));
        format!("(letrec* ({bindings}) {assign} ({first} {turns} {start}))")
    }

    fn procedure(&mut self, d: u32, scope: &Scope) -> String {
        let (p, x) = (self.name(), self.name());
        let body = self.number(d, &scope.with(&[&x]));
        let mut inner = scope.clone();
        inner.procedures.push(p.clone());
        let use_it = self.number(d, &inner);
        format!("(let (({p} (lambda ({x}) {body}))) (+ ({p} 2) {use_it}))")
    }

    /// Closures that share an assigned variable.
    fn counter(&mut self, d: u32, scope: &Scope) -> String {
        let [n, bump, get] = [self.name(), self.name(), self.name()];
        let step = self.number(d, &scope.with(&[&n]));
        let init = self.number(d, scope);
        format!(
            "(let (({n} {init}))
               (letrec (({bump} (lambda () (set! {n} (remainder (+ {n} {step}) 1000)) ({get})))
                        ({get} (lambda () {n})))
                 (- ({bump}) ({bump}) {n})))"
        )
    }

    fn call(&mut self, d: u32, scope: &Scope) -> String {
        let count = scope.procedures.len() as u64;
        let argument = self.number(d, scope);
        if count == 0 {
            let x = self.name();
            let body = self.number(d, &scope.with(&[&x]));
            return format!("((lambda ({x}) {body}) {argument})");
        }
        format!("({} {argument})", scope.procedures[self.below(count) as usize])
    }
}
