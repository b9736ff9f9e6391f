use std::path::Path;

use super::*;
use crate::config::Config;

fn parse(text: &str) -> Result<Mail, String> {
    let config = Config::parse(Path::new("steward.toml"), text).map_err(|e| e.to_string())?;
    config.check().map_err(|e| e.to_string())?;
    Ok(config.mail)
}

#[test]
fn what_cannot_work_is_refused_by_key() {
    for (text, key) in [
        ("[mail]\nlist_id = \"a b\"", "mail.list_id"),
        ("[mail]\nsendmail = []", "mail.sendmail"),
        ("[mail]\nmaildir = \"here\"", "mail.maildir"),
        ("[mail]\nlanguage = \"de\"", "mail.language"),
        ("[mail]\nlanguages = { a = \"../x\" }", "mail.languages"),
        ("[mail]\nhelp = \"hpc.example.org\"", "mail.help"),
        ("[mail]\nhelp = \"https://a/{job}\"", "mail.help"),
        ("[mail]\nhelp_of = { a = \"javascript:x\" }", "mail.help_of"),
        ("[mail.smtp]\nhost = \"a:25\"", "mail.smtp.host"),
        ("[mail.smtp]\nuser = \"a\"", "mail.smtp"),
        (
            "[mail.smtp]\nhost = \"mx.example.org\"\nuser = \"a\"\npassword_file = \"/p\"",
            "mail.smtp.tls",
        ),
        ("[mail.smtp]\ntimeout = \"1h\"", "mail.smtp.timeout"),
        ("[mail.address]\ndomain = \"a b\"", "mail.address.domain"),
        ("[mail.address]\ndomain = \"{user}\"", "mail.address.domain"),
        ("[mail.ldap]\nurl = \"http://a\"", "mail.ldap.url"),
        ("[mail.ldap]\nurl = \"ldaps://a\"\nstarttls = true", "mail.ldap.starttls"),
        (
            "[mail.ldap]\nurl = \"ldap://a\"\nbind_dn = \"cn=a\"\npassword_file = \"/p\"",
            "mail.ldap.url",
        ),
        ("[mail.ldap]\nbind_dn = \"cn=a\"", "mail.ldap"),
        ("[mail.ldap]\nuid = \"uid)(x\"", "mail.ldap.uid"),
    ] {
        let message = parse(text).unwrap_err();
        assert!(message.starts_with(&format!("{key}: ")), "{text:?}: {message}");
    }
}

#[test]
fn an_address_that_is_none_is_named_with_its_place() {
    for text in [
        "[mail]\nfrom = \"steward\"\n",
        "[mail]\nadmins = [\"a@b@c\"]\n",
        "[mail.address]\nmap = { a = \"x\" }\n",
    ] {
        let message = parse(text).unwrap_err();
        assert!(message.starts_with("steward.toml:2:"), "{message}");
    }
}

#[test]
fn what_is_missing_before_mail_can_be_sent_is_told() {
    let missing = |text: &str| match parse(text).unwrap().ready() {
        Ok(()) => String::new(),
        Err(error) => error.to_string().split(':').next().unwrap_or_default().to_owned(),
    };
    let from = "[mail]\nfrom = \"Steward <s@example.org>\"\n";
    assert_eq!(missing(""), "mail.from");
    assert_eq!(missing(from), "mail.address.domain");
    assert_eq!(missing(&format!("{from}address = {{ domain = \"example.org\" }}")), "");
    assert_eq!(missing(&format!("{from}address = {{ method = \"passwd\" }}")), "");
    assert_eq!(missing(&format!("{from}address = {{ method = \"ldap\" }}")), "mail.ldap.url");
    let ldap = "address = { method = \"ldap\" }\nldap = { url = \"ldaps://a\" }";
    assert_eq!(missing(&format!("{from}{ldap}")), "mail.ldap.base");
    let maildir = "transport = \"maildir\"\naddress = { domain = \"a.org\" }";
    assert_eq!(missing(&format!("{from}{maildir}")), "mail.maildir");
}

#[test]
fn a_domain_or_a_pattern_gives_an_address_or_none() {
    for (user, pattern, expected) in [
        ("alice", "example.org", Some("alice@example.org")),
        ("alice", "@example.org", Some("alice@example.org")),
        ("alice", "{user}.hpc@example.org", Some("alice.hpc@example.org")),
        ("a b", "example.org", None),
        ("a\r\nBcc: x", "example.org", None),
        ("", "example.org", None),
        ("a@b", "example.org", None),
    ] {
        let found = address(user, pattern).map(|address| address.to_string());
        assert_eq!(found.as_deref(), expected, "{user:?} {pattern}");
    }
}

#[test]
fn ports_and_languages_have_their_usual_values() {
    let port = |text: &str| parse(text).unwrap().smtp.port();
    assert_eq!(port(""), 25);
    assert_eq!(port("[mail.smtp]\ntls = \"tls\""), 465);
    assert_eq!(port("[mail.smtp]\ntls = \"starttls\""), 587);
    assert_eq!(port("[mail.smtp]\nport = 2525"), 2525);
    let mail = parse("[mail]\nlanguages = { dupont = \"fr\" }").unwrap();
    assert_eq!(mail.language_of(Some("dupont")), "fr");
    assert_eq!((mail.language_of(Some("smith")), mail.language_of(None)), ("en", "en"));
}
