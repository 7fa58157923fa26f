use super::{Config, ConfigMistake, DEFAULT};
use crate::protocol::{ConfiguredUser, Ports, Protocol};
use crate::section::{Section, Settings};
use kyocho_lisp::account::Bounds;
use std::sync::Arc;

/// Protocols with entries in the file: the user of unidentified clients, the user of clients that
/// send a secret, and a section.
static PROTOCOLS: [Protocol; 3] = [
    protocol("telnet", ConfiguredUser::Unidentified),
    protocol("nrepl", ConfiguredUser::Trusted),
    Protocol { read_section: Some(read), ..protocol("ssh", ConfiguredUser::None) },
];

const fn protocol(name: &'static str, user: ConfiguredUser) -> Protocol {
    Protocol {
        name,
        socket_prefix: None,
        own_socket: None,
        ports: Ports::None,
        user,
        read_section: None,
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Connections {
    connections: toml::Spanned<u8>,
}

fn read(section: Option<Section<'_>>) -> Result<Settings, ConfigMistake> {
    let Some(section) = section else { return Ok(Arc::new(7_u8)) };
    let connections = section.read::<Connections>()?.connections;
    match *connections.get_ref() {
        0 => Err((connections.span(), "at least one".to_owned())),
        some => Ok(Arc::new(some)),
    }
}

fn parse(text: &str) -> Result<Config, ConfigMistake> {
    Config::parse(text, OWN, PROTOCOLS.iter())
}

/// The number of the host's user who runs the server.
const OWN: u32 = 7;

fn line_and_message(text: &str) -> (usize, String) {
    let (place, message) = parse(text).unwrap_err();
    (1 + text[..place.start].matches('\n').count(), message)
}

#[test]
fn users_inherit_the_limits_of_everybody() {
    let config = parse(
        "listen = ['unix:/tmp/s']\ntelnet_user = 'guest'\n[limits]\nmemory_mib = 16\n\
         [user.ada]\nuid = 7\nthreads = 3\nshare = 4\nfiles = true\noperator = true\n[user.guest]\n",
    )
    .unwrap();
    let limits = Bounds { memory_bytes_max: 16 << 20, ..DEFAULT };
    assert_eq!(config.users["guest"].bounds, limits);
    assert_eq!(
        config.users["ada"].bounds,
        Bounds { threads_max: 3, share: 4, files: true, operator: true, ..limits }
    );
    assert_eq!(config.user_of(7), Some("ada"));
    assert_eq!(config.user_of(8), None);
    assert_eq!(config.configured_users["telnet"], "guest");
}

#[test]
fn protocols_read_their_own_sections() {
    let number = |text| {
        let settings = Arc::clone(&parse(text).unwrap().settings["ssh"]);
        *settings.downcast::<u8>().unwrap()
    };
    assert_eq!(number("[user.a]\n"), 7, "the section is missing");
    assert_eq!(number("[ssh]\nconnections = 3\n[user.a]\n"), 3);
    let owner = Config::of_owner(OWN, PROTOCOLS.iter());
    assert!(owner.settings.contains_key("ssh"));
    assert_eq!(owner.configured_users["nrepl"], "owner");
    assert!(!owner.configured_users.contains_key("telnet"));
}

#[test]
fn mistakes_are_reported_with_their_line() {
    for (text, line, part) in [
        ("[user.a]\nuid = 1\n[user.b]\nuid = 1\n", 4, "uid 1 belongs to a already"),
        ("\ntelnet_user = 'nobody'\n", 2, "there is no [user.nobody]"),
        ("nrepl_user = 'nobody'\n", 1, "there is no [user.nobody]"),
        ("[limits]\n\nmemory_mib = 1\n", 3, "at least 4"),
        ("[limits]\nthreads = -1\n", 2, ""),
        ("[user.a]\npriority = 64\n", 2, "0 to 63"),
        ("[user.a]\nfiles = true\nshare = 0\n", 3, "share must be 1 to 1000"),
        ("[user.b]\n[user.a]\nuid = 8\nfiles = true\n", 2, "a may not have files"),
        ("[user.a]\nfiles = true\n", 1, "Only the user with `uid = 7`"),
        ("[limits]\nfiles = true\n[user.a]\nuid = 7\n[user.b]\n", 5, "b may not have files"),
        ("telnet_user = 'a'\n[user.a]\nuid = 7\n", 1, "telnet_user must have no uid"),
        ("telnet_user = 'a'\n[user.a]\noperator = true\n", 1, "telnet_user must have no uid"),
        (
            "telnet_user = 'a'\n[user.a]\nkeys = ['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ x']\n",
            1,
            "telnet_user must have no uid",
        ),
        ("[user.a]\nmemory = 64\n", 2, "unknown field `memory`"),
        ("[user.a\n", 1, ""),
        ("worlds = '/tmp'\n[user.'../../etc/x']\n", 2, "a user's name is letters"),
        ("[user.a]\nkeys = [\n'ssh-ed25519 AAAA x']\n", 3, "not a public key as in a .pub file"),
        ("[user.'a/b']\nkeys = ['']\n", 1, "a user's name is letters"),
        ("[user.a]\n[ssh]\nconnections = 0\n", 3, "at least one"),
        ("[ssh]\n\nconnections = 'x'\n", 3, "invalid type"),
        ("[limits]\nthreads = 2\nuid = 7\n", 3, "`uid` belongs in the section of one user"),
        ("[limits]\noperator = false\n", 2, "`operator` belongs in the section of one user"),
        ("[limits]\nkeys = ['x']\n", 2, "`keys` belongs in the section of one user"),
        ("\nftp_user = 'a'\n[user.a]\n", 2, "unknown field `ftp_user`, expected one of `listen`"),
        ("telnet_user = 3\n", 1, "expected a string"),
        ("[ssh]\nconnection = 1\n", 2, "unknown field `connection`"),
    ] {
        let (found, message) = line_and_message(text);
        assert_eq!(found, line, "{text}: {message}");
        assert!(message.contains(part), "{text}: {message}");
    }
}
