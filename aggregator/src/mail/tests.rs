use super::*;

fn config(text: &str) -> Config {
    let mail = "[mail]\nfrom = \"Steward <steward@example.org>\"\n\
                reply_to = \"Help desk <help@example.org>\"\nask = \"help@example.org\"\n\
                help = \"https://hpc.example.org/help/{rule}?for={user}\"\n\
                address = { domain = \"example.org\" }\n";
    let config = Config::parse(Path::new("x.toml"), &format!("{mail}{text}")).unwrap();
    config.check().unwrap();
    config
}

fn written(text: &str, template: Template) -> Message {
    let post = Post::preview(&config(text)).unwrap();
    let letter = sample(template);
    let person = Person { address: letter.to.clone(), name: Some("Ada".to_owned()) };
    let message = post.write(&letter, Some(&person)).unwrap();
    // To look at: STEWARD_MAILS names a directory.
    if let Some(directory) = std::env::var_os("STEWARD_MAILS") {
        let language = &post.mail.language;
        let stem = Path::new(&directory).join(format!("{}-{language}", template.name()));
        std::fs::write(stem.with_extension("eml"), &message.raw).unwrap();
        std::fs::write(stem.with_extension("txt"), &message.text).unwrap();
        std::fs::write(stem.with_extension("html"), &message.html).unwrap();
    }
    message
}

/// The headers, each on one line.
fn headers(message: &Message) -> Vec<String> {
    let raw = String::from_utf8(message.raw.clone()).unwrap();
    let (head, _) = raw.split_once("\r\n\r\n").unwrap();
    head.replace("\r\n ", " ").lines().map(str::to_owned).collect()
}

#[test]
fn every_template_of_every_language_can_be_rendered() {
    Post::preview(&Config::default()).unwrap().try_all().unwrap();
    for language in ["en", "fr"] {
        for template in Template::ALL {
            let message = written(&format!("language = \"{language}\""), template);
            for line in message.text.lines().filter(|line| !line.contains("https://")) {
                assert!(crate::output::plain::width(line) <= 78, "{template:?}: {line:?}");
            }
            assert!(message.raw.is_ascii(), "{template:?}: every server takes it");
        }
    }
}

#[test]
fn a_mail_says_who_wrote_it_and_that_nobody_answers_for_it() {
    let message = written("", Template::Copy);
    let headers = headers(&message);
    for line in [
        "Message-ID: <00112233445566778899aabbccddeeff@example.org>",
        "From: Steward <steward@example.org>",
        "Reply-To: \"Help desk\" <help@example.org>",
        "To: ada@example.org",
        "Cc: lead@example.org",
        "Auto-Submitted: auto-generated",
        "List-Id: <steward.example.org>",
        "Content-Language: en",
        "X-Steward-About: ada",
        "MIME-Version: 1.0",
    ] {
        let plain = line.replace('"', "");
        let has = headers.iter().any(|header| header.replace('"', "") == plain);
        assert!(has, "{line} is not in {headers:#?}");
    }
    assert!(headers.iter().any(|header| header.starts_with("Date: ")));
    assert!(message.subject.starts_with("[copy: ada] "), "{}", message.subject);
    let first = message.text.lines().nth(2).unwrap();
    assert!(first.contains("what ada is told"), "{first}");
}

#[test]
fn a_hostile_name_harms_neither_header_nor_body() {
    for template in Template::ALL {
        let mut letter = sample(template);
        letter.about = Some(HOSTILE.to_owned());
        if let Content::Digest(digest) = &mut letter.content {
            digest.user = HOSTILE.to_owned();
            for item in &mut digest.items {
                item.cluster = HOSTILE.to_owned();
                item.part = Some(HOSTILE.to_owned());
            }
        }
        if letter.user.is_some() {
            letter.user = Some(HOSTILE.to_owned());
        }
        let post = Post::preview(&config("")).unwrap();
        let person = Person { address: letter.to.clone(), name: Some(HOSTILE.to_owned()) };
        let message = post.write(&letter, Some(&person)).unwrap();
        let headers = headers(&message);
        assert!(!headers.iter().any(|line| line.starts_with("Bcc")), "{headers:#?}");
        let html = message.html.to_lowercase();
        assert!(!html.contains("<script"), "{template:?}");
        assert!(html.contains("&lt;script&gt;"), "{template:?}: it is shown, as text");
        assert!(
            message.text.contains("\\r\\nBcc: a@b") || message.text.contains("<scr"),
            "{template:?}"
        );
        assert!(!message.text.lines().any(|line| line.starts_with("Bcc")), "{}", message.text);
        assert!(!message.text.contains('\r'));
    }
}

#[test]
fn the_digest_has_figures_jobs_and_a_picture() {
    let message = written("", Template::Digest);
    for text in [
        "Hi Ada (ada),",
        "1,834 GPU-hours",
        "12 jobs",
        "48.0\u{a0}% of them",
        "and 2 more",
        "https://hpc.example.org/help/zero-util-gpu-hours?for=ada",
        "You have heard of this once before.",
    ] {
        let one_line = message.text.replace('\n', " ");
        assert!(one_line.contains(text), "{text:?} is not in\n{}", message.text);
    }
    assert!(message.html.contains("cid:chart.00112233"));
    let raw = String::from_utf8_lossy(&message.raw);
    assert!(raw.contains("Content-ID: <chart.00112233445566778899aabbccddeeff@example.org>"));
    assert!(raw.contains("multipart/alternative") && raw.contains("multipart/related"));
    for outside in ["http://", "src=\"http", "url("] {
        assert!(!message.html.contains(outside), "{outside}");
    }
}

#[test]
fn the_french_digest_is_french() {
    let message = written("language = \"fr\"", Template::Digest);
    let one_line = message.text.replace('\n', " ");
    for text in
        ["Bonjour Ada (ada),", "1\u{202f}834 heures GPU", "48,0\u{a0}%", "et 2 de plus", "H GPU"]
    {
        assert!(one_line.contains(text), "{text:?} is not in\n{}", message.text);
    }
    assert!(headers(&message).contains(&"Content-Language: fr".to_owned()));
}

#[test]
fn without_a_font_there_is_no_chart() {
    // Whether there is one is found out once in a process; drawing alone decides here.
    assert_eq!(chart::draw(Vec::new()).unwrap(), None);
}

#[test]
fn a_secret_is_the_first_thing_in_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("p");
    std::fs::write(&file, "pass word\n").unwrap();
    assert_eq!(secret(&file).unwrap(), "pass word");
    std::fs::write(&file, "\n").unwrap();
    assert!(secret(&file).unwrap_err().ends_with("holds no password"));
    assert!(secret(&directory.path().join("none")).is_err());
}

#[test]
fn nothing_is_opened_before_it_is_ready() {
    assert!(matches!(Post::open(&Config::default()), Err(OpenError::NotReady(_))));
    Post::open(&config("")).unwrap();
    let told = check(&Config::default()).unwrap();
    assert!(told.starts_with("cannot be sent yet: mail.from"), "{told}");
    assert_eq!(check(&config("")).unwrap(), "by localhost:25, in en (known: en, fr)");
}
