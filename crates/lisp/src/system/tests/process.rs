//! State of the process that all users of a server share: no session can change it.

use super::sessions::{SMALL, eval, open, two};
use kyocho_heap::account::Bounds;

#[test]
fn no_user_of_a_server_can_change_shared_state() {
    two(|system, ada, bob| {
        let mut own = system.session();
        for account in [&ada, &bob] {
            account.set_bounds(Bounds { files: true, ..SMALL });
        }
        let ((mut a, _), (mut b, _)) = (open(&system, &ada), open(&system, &bob));
        let folder = eval(&mut own, "(current-directory)");
        for change in [
            "(set-umask! #o777)",
            "(nice 1)",
            "(set-current-directory! \"/tmp\")",
            "(fd->port 0 'binary-input)",
        ] {
            let message = eval(&mut a, change);
            assert!(
                message.contains("only the user that runs the process may"),
                "{change}: {message}"
            );
        }
        assert_eq!(eval(&mut own, "(current-directory)"), folder);
        assert_eq!(eval(&mut a, "(exact-integer? (umask))"), "#t");
        // Each session has its own environment.
        eval(&mut a, "(set-environment-variable! \"KYOCHO_ADA\" \"hers\")");
        let asked = "(get-environment-variable \"KYOCHO_ADA\")";
        assert_eq!(eval(&mut a, asked), "\"hers\"");
        assert_eq!(
            eval(
                &mut a,
                "(thread-join! (spawn (lambda () (get-environment-variable \"KYOCHO_ADA\"))))"
            ),
            "\"hers\""
        );
        let shell = "(import (only (kyocho unix) run/string)) (run/string \"sh\" \"-c\" \"echo $KYOCHO_ADA\")";
        assert_eq!(eval(&mut a, shell), "\"hers\\n\"");
        for session in [&mut b, &mut own] {
            assert_eq!(eval(session, asked), "#f");
            assert_eq!(eval(session, shell), "\"\\n\"");
        }
        // All of this requires the right to use files.
        bob.set_bounds(SMALL);
        for call in [
            "(umask)",
            "(open-file \"/dev/null\" 'binary-input 0)",
            "(create-fifo \"/tmp/kyocho-never\")",
            "(set-file-owner \"/tmp\" #f #f)",
            "(set-file-times \"/tmp\")",
            "(file-space \"/\")",
            "(user-entry 0)",
            "(group-entry 0)",
            "(set-environment-variable! \"A\" \"b\")",
            "(delete-environment-variable! \"PATH\")",
        ] {
            let message = eval(&mut b, call);
            assert!(message.contains("this user may not use files"), "{call}: {message}");
        }
    });
}
