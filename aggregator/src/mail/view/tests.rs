use super::*;
use crate::mail::{Template, sample};

fn words() -> Words {
    Words::read(include_str!("../../../templates/en/words.toml"), None).unwrap().0
}

fn digest() -> Digest {
    match sample(Template::Digest).content {
        Content::Digest(digest) => digest,
        Content::Sections(_) | Content::Account(_) => panic!("a digest"),
    }
}

#[test]
fn bars_are_of_jobs_or_of_three_topics() {
    let mut digest = digest();
    let of_jobs = bars(&Content::Digest(digest.clone()), &words()).unwrap();
    assert!(of_jobs.title.ends_with("by job"));
    // Twelve jobs of which one is not known, and five.
    assert_eq!(of_jobs.bars.len(), 16);
    // A job that two findings are about has one bar, the longer one.
    let twice = digest.items[0].clone();
    digest.items = vec![twice.clone(), twice.clone()];
    assert_eq!(bars(&Content::Digest(digest.clone()), &words()).unwrap().bars.len(), 11);
    digest.items.push(twice);
    let of_items = bars(&Content::Digest(digest), &words()).unwrap();
    assert_eq!((of_items.bars.len(), of_items.bars[0].text.as_str()), (3, "3,669"));
    assert!(bars(&Content::Sections(Vec::new()), &words()).is_none());
}

#[test]
fn links_and_addresses_cannot_be_left() {
    assert_eq!(encoded("a b&c=\"<é"), "a%20b%26c%3D%22%3C%C3%A9");
    assert_eq!(link_of("help@example.org").as_deref(), Some("mailto:help@example.org"));
    assert_eq!(link_of("https://help.example.org").as_deref(), Some("https://help.example.org"));
    assert_eq!(link_of("javascript:alert(1)"), None);
    assert_eq!(link_of("room 5"), None);
    let mut mail =
        Mail { help: Some("https://a.org/{rule}/{instance}/{user}".into()), ..Mail::default() };
    let mut digest = digest();
    digest.user = "x/../y".to_owned();
    let link = |mail: &Mail| help(&digest, &digest.items[1], mail).unwrap();
    assert_eq!(link(&mail), "https://a.org/low-cpu-efficiency/low-cpu-efficiency/x%2F..%2Fy");
    mail.help_of.insert("low-cpu-efficiency".into(), "https://b.org".into());
    assert_eq!(link(&mail), "https://b.org");
}

#[test]
fn figures_of_a_sentence_are_those_of_the_finding() {
    let digest = digest();
    let figures = figures(&digest, &digest.items[1], &words());
    for (key, text) in [("cpu_hours", "5,210"), ("n", "5"), ("billing_hours", "2,709")] {
        assert_eq!(figures.get(key).map(|shown| shown.text.as_str()), Some(text), "{key}");
    }
    let mut unknown = digest.clone();
    unknown.items[1].totals.rows[0][1] = Cell::Missing;
    let view = item(&unknown, &unknown.items[1], &words(), &Mail::default());
    assert_eq!(view.what, "", "no sentence with a hole in it");
}

#[test]
fn who_is_greeted_depends_on_what_is_known() {
    let mail = Mail::default();
    let mut letter = sample(Template::Digest);
    letter.user = Some("aturing".to_owned());
    let mut person = Person { address: letter.to.clone(), name: Some("Alan".to_owned()) };
    let greeting = |letter: &Letter, person: Option<&Person>| {
        view(letter, person, ("en", &words()), &mail).greeting
    };
    assert_eq!(greeting(&letter, Some(&person)), "Hi Alan (aturing),");
    person.name = None;
    assert_eq!(greeting(&letter, Some(&person)), "Hello aturing,");
    assert_eq!(greeting(&letter, None), "Hello aturing,");
    let asked = |letter: &Letter| view(letter, None, ("en", &words()), &mail).ask;
    assert!(asked(&letter).starts_with("Questions? Your administrators"));
    letter.user = None;
    assert_eq!(asked(&letter), "", "administrators ask nobody");
    assert_eq!(greeting(&letter, None), "Hello,");
}
