use std::fs;

use super::*;
use crate::config::Config;
use crate::mail::{Post, sample};

fn site(files: &[(&str, &str)]) -> (tempfile::TempDir, Config) {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let mut config = Config::default();
    config.mail.templates = Some(directory.path().to_owned());
    (directory, config)
}

/// What is wrong with these files of a site, without the directory.
fn wrong(files: &[(&str, &str)]) -> String {
    let (directory, config) = site(files);
    let error = crate::mail::check(&config).unwrap_err().to_string();
    error.replace(&format!("{}/", directory.path().display()), "")
}

#[test]
fn a_site_replaces_single_files() {
    let (_directory, config) = site(&[
        ("en/digest.subject.j2", "To {{ user }}"),
        ("fr/words.toml", "[phrases]\ngreeting_name = \"Salut {name},\"\n"),
        ("de/digest.subject.j2", "An {{ user }}"),
        ("base/frame.text.j2", "{{ greeting }} {% block lead %}{% endblock %} own frame"),
    ]);
    let post = Post::preview(&config).unwrap();
    post.try_all().unwrap();
    assert_eq!(post.languages.names().collect::<Vec<_>>(), ["de", "en", "fr"]);
    let letter = sample(Template::Digest);
    let person = crate::mail::Person { address: letter.to.clone(), name: Some("Ada".into()) };
    let write = |language| post.write_in(language, &letter, Some(&person), None).unwrap();
    assert_eq!((write("en").subject, write("de").subject), ("To ada".into(), "An ada".into()));
    assert!(write("fr").text.starts_with("Salut Ada, Nous avons"), "{}", write("fr").text);
    assert!(write("de").text.starts_with("Hi Ada (ada),"), "what a language lacks is English");
    assert!(write("de").text.ends_with("own frame\n"));
}

#[test]
fn a_mistake_is_told_with_file_and_line() {
    for (file, text, place) in [
        ("en/digest.text.j2", "a\n{{ nothing_like_it }}\n", "en/digest.text.j2:2: undefined"),
        ("fr/copy.html.j2", "\n\n{% if %}", "fr/copy.html.j2:3: syntax error"),
        ("base/frame.html.j2", "a\nb\n{{ items[0].titel }}", "base/frame.html.j2:3: undefined"),
        ("en/words.toml", "decimal = \".\"\nthousands = 1\n", "en/words.toml"),
        ("en/words.toml", "a =\n", "en/words.toml:1: "),
        ("en/trouble.text.j2", "{{ greeting|shout }}", "en/trouble.text.j2:1: unknown filter"),
    ] {
        let error = wrong(&[(file, text)]);
        assert!(error.starts_with(&format!("mail.templates: {place}")), "{file}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    let mut config = Config::default();
    config.mail.templates = Some("/no/such/directory".into());
    let error = crate::mail::check(&config).unwrap_err().to_string();
    assert!(error.starts_with("mail.templates: /no/such/directory: "), "{error}");
}

#[test]
fn a_language_that_there_is_not_is_refused() {
    let (_directory, mut config) = site(&[]);
    config.mail.language = "de".to_owned();
    let error = Post::preview(&config).unwrap_err().to_string();
    assert!(error.starts_with("de/: no such language"), "{error}");
}
