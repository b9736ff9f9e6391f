//! Mail against real servers: aiosmtpd, slapd, a program, a directory.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde_json::Value;
use steward_aggregator::config::Config;
use steward_aggregator::mail::{
    AddressError, Content, HOSTILE, Letter, Message, MessageId, Person, Post, SendError, Template,
    sample,
};
use steward_tests::certificate::Certificate;
use steward_tests::slapd::{BASE, READER, Slapd};
use steward_tests::smtp::{Mail, Smtp, maildir};

const FROM: &str =
    "from = \"Steward <steward@example.org>\"\nreply_to = \"Help <help@example.org>\"\n";

/// The post office of these settings.
fn post(settings: &str) -> Post {
    let mut text = format!("[mail]\n{FROM}");
    if !settings.contains("[mail.address]") {
        text += "address = { domain = \"example.org\" }\n";
    }
    text += settings;
    let config = Config::parse(Path::new("test.toml"), &text).unwrap();
    config.check().unwrap();
    Post::open(&config).unwrap()
}

fn by_smtp(smtp: &Smtp) -> Post {
    let port = smtp.port();
    post(&format!("smtp = {{ host = \"127.0.0.1\", port = {port}, timeout = \"2s\" }}\n"))
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(work)
}

fn letter(post: &Post, template: Template) -> Letter {
    let id = MessageId::random(post.from()).unwrap();
    Letter { id, ..sample(template) }
}

fn written(post: &Post, letter: &Letter) -> Message {
    let person = Person { address: letter.to.clone(), name: None };
    post.write(letter, Some(&person)).unwrap()
}

async fn send(post: &Post, message: &Message, to: &str) -> Result<(), SendError> {
    post.send(&message.raw, &to.parse().unwrap()).await
}

/// Of several with the same name, and of one that is missing, nothing.
fn header(mail: &Value, name: &str) -> String {
    match mail["headers"][name].as_array().map(Vec::as_slice) {
        Some([one]) => one.as_str().unwrap().to_owned(),
        _ => String::new(),
    }
}

fn text_of(mail: &Value, kind: &str) -> String {
    let parts = mail["parts"].as_array().unwrap();
    let part = parts.iter().find(|part| part["type"] == kind).unwrap();
    part["text"].as_str().unwrap().to_owned()
}

#[test]
fn a_mail_arrives_with_all_its_headers_once_for_each_recipient() {
    let smtp = Smtp::start();
    let post = by_smtp(&smtp);
    let letter = letter(&post, Template::Digest);
    let message = written(&post, &letter);
    wait(async {
        for to in ["ada@example.org", "lead@example.org"] {
            send(&post, &message, to).await.unwrap();
        }
    });
    assert_eq!(smtp.recipients(), ["ada@example.org", "lead@example.org"]);
    let mails = smtp.messages();
    assert_eq!(mails[0].header("X-MailFrom").as_deref(), Some("steward@example.org"));
    let mail = mails[0].parsed();
    for (name, value) in [
        ("message-id", format!("<{}>", letter.id)),
        ("from", "Steward <steward@example.org>".to_owned()),
        ("reply-to", "Help <help@example.org>".to_owned()),
        ("to", "ada@example.org".to_owned()),
        ("cc", "lead@example.org".to_owned()),
        ("subject", message.subject.clone()),
        ("auto-submitted", "auto-generated".to_owned()),
        ("list-id", "<steward.example.org>".to_owned()),
        ("content-language", "en".to_owned()),
        ("mime-version", "1.0".to_owned()),
    ] {
        assert_eq!(header(&mail, name), value, "{name}");
    }
    assert!(!header(&mail, "date").is_empty());
    let kinds: Vec<&str> = mail["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| part["type"].as_str().unwrap())
        .collect();
    let expected =
        ["multipart/alternative", "text/plain", "multipart/related", "text/html", "image/png"];
    assert_eq!(kinds, expected);
    assert_eq!(text_of(&mail, "text/plain").trim_end(), message.text.trim_end());
    let picture = &mail["parts"][4];
    assert_eq!(picture["begins"], "89504e470d0a1a0a", "a PNG");
    let cid = picture["id"].as_str().unwrap().trim_matches(['<', '>']).to_owned();
    assert!(text_of(&mail, "text/html").contains(&format!("src=\"cid:{cid}\"")));
}

/// Read by Python's email package, which knows nothing of how it was written.
#[test]
fn a_hostile_name_harms_neither_header_nor_body() {
    let smtp = Smtp::start();
    let post = by_smtp(&smtp);
    let sent: Vec<Message> = Template::ALL
        .iter()
        .map(|template| {
            let mut letter = letter(&post, *template);
            letter.about = Some(HOSTILE.to_owned());
            letter.user = letter.user.map(|_| HOSTILE.to_owned());
            if let Content::Digest(digest) = &mut letter.content {
                digest.user = HOSTILE.to_owned();
                digest.items.iter_mut().for_each(|item| item.cluster = HOSTILE.to_owned());
            }
            let name = Some(HOSTILE.to_owned());
            let person = Person { address: letter.to.clone(), name };
            post.write(&letter, Some(&person)).unwrap()
        })
        .collect();
    wait(async {
        for message in &sent {
            send(&post, message, "ada@example.org").await.unwrap();
        }
    });
    assert_eq!(smtp.recipients().len(), Template::ALL.len());
    let known = [
        "message-id",
        "date",
        "from",
        "to",
        "cc",
        "subject",
        "reply-to",
        "auto-submitted",
        "x-auto-response-suppress",
        "list-id",
        "content-language",
        "x-steward-about",
        "mime-version",
        "content-type",
        "content-transfer-encoding",
        "x-peer",
        "x-mailfrom",
        "x-rcptto",
    ];
    for mail in smtp.messages().iter().map(Mail::parsed) {
        let headers = mail["headers"].as_object().unwrap();
        for (name, values) in headers {
            assert!(known.contains(&name.as_str()), "{name}: {values}");
            assert_eq!(values.as_array().unwrap().len(), 1, "{name}: {values}");
        }
        assert_eq!(header(&mail, "to"), "ada@example.org");
        assert!(header(&mail, "x-steward-about").ends_with("\"x\" Bcc: a@b"));
        let html = text_of(&mail, "text/html").to_lowercase();
        assert!(!html.contains("<script") && html.contains("&lt;script&gt;"));
        assert!(!text_of(&mail, "text/plain").lines().any(|line| line.starts_with("Bcc")));
        for part in mail["parts"].as_array().unwrap() {
            assert_eq!(part["defects"], 0, "{part}");
        }
    }
}

#[test]
fn a_refused_recipient_stops_nobody_else() {
    let smtp = Smtp::start();
    smtp.refuse("gone@example.org");
    smtp.refuse_for_now("full@example.org");
    let post = by_smtp(&smtp);
    let message = written(&post, &letter(&post, Template::Digest));
    wait(async {
        let to = |to: &'static str| send(&post, &message, to);
        to("a@example.org").await.unwrap();
        let error = to("gone@example.org").await.unwrap_err();
        assert!(matches!(error, SendError::Refused { permanent: true, .. }), "{error}");
        assert!(error.to_string().contains("as ordered"), "{error}");
        let error = to("full@example.org").await.unwrap_err();
        assert!(matches!(error, SendError::Refused { permanent: false, .. }), "{error}");
        to("b@example.org").await.unwrap();
        smtp.forgive();
        to("full@example.org").await.unwrap();
    });
    assert_eq!(smtp.recipients(), ["a@example.org", "b@example.org", "full@example.org"]);
}

#[test]
fn a_server_that_is_away_took_nothing_and_is_found_again() {
    let mut smtp = Smtp::start();
    let post = by_smtp(&smtp);
    let message = written(&post, &letter(&post, Template::Digest));
    wait(async {
        send(&post, &message, "a@example.org").await.unwrap();
        // The connection that was kept dies with it.
        smtp.stop();
        let error = send(&post, &message, "b@example.org").await.unwrap_err();
        assert!(matches!(error, SendError::Down { .. }), "{error}");
        smtp.resume();
        send(&post, &message, "c@example.org").await.unwrap();
    });
    assert_eq!(smtp.recipients(), ["a@example.org", "c@example.org"]);
}

#[test]
fn a_server_that_does_not_answer_for_the_text_leaves_it_open() {
    let smtp = Smtp::start();
    smtp.stall();
    let post = by_smtp(&smtp);
    let message = written(&post, &letter(&post, Template::Digest));
    let error = wait(send(&post, &message, "a@example.org")).unwrap_err();
    assert!(matches!(error, SendError::Unsure { .. }), "{error}");
    assert_eq!(smtp.recipients(), ["a@example.org"], "it was taken after all");
}

#[test]
fn passwords_go_over_tls_only_and_strangers_are_not_trusted() {
    let (certificate, stranger) = (Certificate::make(), Certificate::make());
    let directory = tempfile::tempdir().unwrap();
    let secret = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (right, wrong) = (secret("right", "s3cret\n"), secret("wrong", "guess\n"));
    for tls in ["starttls", "tls"] {
        // aiosmtpd takes a login after STARTTLS only.
        let login = (tls == "starttls").then_some("steward:s3cret");
        let smtp = Smtp::secure(tls, &certificate, login);
        let by = |ca: &Certificate, password: &str| {
            let mut text = "[mail.smtp]\nhost = \"localhost\"\ntimeout = \"5s\"\n".to_owned();
            writeln!(
                text,
                "port = {}\ntls = \"{tls}\"\nca_file = \"{}\"",
                smtp.port(),
                ca.authority()
            )
            .unwrap();
            if login.is_some() {
                writeln!(text, "user = \"steward\"\npassword_file = \"{password}\"").unwrap();
            }
            let post = post(&text);
            let message = written(&post, &letter(&post, Template::Warning));
            wait(send(&post, &message, "a@example.org"))
        };
        by(&certificate, &right).unwrap();
        let error = by(&stranger, &right).unwrap_err();
        assert!(matches!(error, SendError::Down { .. }), "{tls}: {error}");
        if login.is_some() {
            let error = by(&certificate, &wrong).unwrap_err();
            assert!(matches!(error, SendError::Down { .. }), "{tls}: {error}");
            assert!(!error.to_string().contains("guess"), "{error}");
        }
        assert_eq!(smtp.recipients(), ["a@example.org"], "{tls}");
    }
}

#[test]
fn a_program_and_a_directory_take_mails_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let script = format!(
        "case $5 in no@*) echo unknown >&2; exit 67;; esac\n{{ echo \"$@\"; cat; }} >>{}\n",
        path("out")
    );
    fs::write(path("sendmail"), script).unwrap();
    let settings =
        format!("transport = \"sendmail\"\nsendmail = [\"sh\", \"{}\"]\n", path("sendmail"));
    let by_program = post(&settings);
    let message = written(&by_program, &letter(&by_program, Template::Digest));
    wait(send(&by_program, &message, "a@example.org")).unwrap();
    let error = wait(send(&by_program, &message, "no@example.org")).unwrap_err();
    assert!(matches!(error, SendError::Refused { permanent: true, .. }), "{error}");
    let out = fs::read_to_string(path("out")).unwrap();
    let (arguments, raw) = out.split_once('\n').unwrap();
    assert_eq!(arguments, "-i -f steward@example.org -- a@example.org");
    let mail = Mail { raw: raw.as_bytes().to_vec() }.parsed();
    assert_eq!(header(&mail, "subject"), message.subject);

    let settings = format!("transport = \"maildir\"\nmaildir = \"{}\"\n", path("mail"));
    let by_directory = post(&settings);
    wait(send(&by_directory, &message, "a@example.org")).unwrap();
    let mails = maildir(Path::new(&path("mail")));
    assert_eq!(mails.len(), 1);
    assert_eq!(mails[0].header("Delivered-To").as_deref(), Some("a@example.org"));
    assert_eq!(text_of(&mails[0].parsed(), "text/plain").trim_end(), message.text.trim_end());
}

/// The first line of a mail to the user, and the address; vectors 32 and 33 of the reference.
fn greeted(post: &Post, user: &str) -> (String, Result<String, AddressError>) {
    let person = wait(post.person(user));
    let mut letter = letter(post, Template::Digest);
    letter.user = Some(user.to_owned());
    let message = post.write(&letter, person.as_ref().ok()).unwrap();
    let first = message.text.lines().next().unwrap().to_owned();
    (first, person.map(|person| person.address.to_string()))
}

#[test]
fn addresses_and_names_come_from_a_directory_service() {
    let users = [
        ("aturing", "displayName: Alan Turing\nmail: alan@example.org\n"),
        ("base64", "displayName:: QWxhbiBUdXJpbmc=\nmail: b@example.org\n"),
        ("noname", "mail: n@example.org\n"),
        ("nomail", "displayName: Alan Turing\n"),
        ("odd", "displayName: 1234\nmail: no address\n"),
        ("renamed", "fullname: Alan Turing\ncontact: other@example.org\n"),
    ];
    let certificate = Certificate::make();
    let slapd = Slapd::start(&users, Some(&certificate));
    let settings = |more: &str| {
        format!(
            "[mail.address]\nmethod = \"ldap\"\n[mail.greeting]\nmethod = \"ldap\"\n[mail.ldap]\n\
             url = \"{}\"\nbase = \"{BASE}\"\n{more}\n",
            slapd.url()
        )
    };
    let secret = format!("bind_dn = \"{READER}\"\npassword_file = \"{}\"\n", slapd.password_file());
    let trust = format!("starttls = true\nca_file = \"{}\"\n", certificate.authority());
    let by_ldap = post(&settings(&format!("{secret}{trust}")));
    for (user, greeting, address) in [
        ("aturing", "Hi Alan (aturing),", Ok("alan@example.org")),
        ("base64", "Hi Alan (base64),", Ok("b@example.org")),
        ("noname", "Hello noname,", Ok("n@example.org")),
        ("nomail", "Hello nomail,", Err(AddressError::Unknown)),
        ("odd", "Hello odd,", Err(AddressError::Unusable)),
        ("nobody", "Hello nobody,", Err(AddressError::Unknown)),
        ("*", "Hello *,", Err(AddressError::Unknown)),
        ("x)(uid=aturing", "Hello x)(uid=aturing,", Err(AddressError::Unknown)),
    ] {
        let expected = (greeting.to_owned(), address.map(str::to_owned));
        assert_eq!(greeted(&by_ldap, user), expected, "{user}");
    }
    let renamed = format!("{secret}{trust}mail = \"contact\"\nname = \"fullname\"\n");
    let (greeting, address) = greeted(&post(&settings(&renamed)), "renamed");
    assert_eq!(
        (greeting.as_str(), address),
        ("Hi Alan (renamed),", Ok("other@example.org".into()))
    );

    // A stranger gets no password, and the server takes none in the clear; both may be mended.
    let other = Certificate::make();
    let distrust = format!("{secret}starttls = true\nca_file = \"{}\"\n", other.authority());
    for more in [distrust, secret] {
        let error = wait(post(&settings(&more)).person("aturing")).unwrap_err();
        assert!(error.is_passing(), "{error}");
        assert!(!error.to_string().contains("only for the test"), "{error}");
    }
}
