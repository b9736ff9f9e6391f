use super::*;

#[test]
fn only_what_looks_like_a_name_is_one() {
    for (gecos, name) in [
        ("Alan Turing", Some("Alan")),
        ("Alan Turing,Room 5,123,456,x", Some("Alan")),
        ("  Jean-Luc  Picard", Some("Jean-Luc")),
        ("Éloïse Müller", Some("Éloïse")),
        ("", None),
        (" ", None),
        (",,,", None),
        ("1234", None),
        ("&", None),
        ("A. Turing", None),
        ("Dr. Turing", None),
        ("<script>alert(1)</script>|\"x\"\r\nBcc: a@b", None),
        ("Alan\r\nBcc: a@b", None),
        ("Al\u{202e}an Turing", None),
        (&"x".repeat(5000), None),
    ] {
        assert_eq!(name_of_gecos(gecos).as_deref(), name, "{gecos:?}");
    }
    assert_eq!(first_name("Turing, Alan").as_deref(), Some("Alan"));
    assert_eq!(first_name("Turing,").as_deref(), None);
}

#[test]
fn an_address_is_found_among_the_fields() {
    for (gecos, address) in [
        ("Alan,,,,alan@example.org", Some("alan@example.org")),
        ("Alan <alan@example.org>,x", Some("alan@example.org")),
        ("Alan Turing", None),
        ("@,a@,@b", None),
        ("", None),
    ] {
        assert_eq!(address_of_gecos(gecos).map(|a| a.to_string()).as_deref(), address, "{gecos}");
    }
}

fn mail(text: &str) -> Mail {
    let text = format!("[mail]\n{text}");
    crate::config::Config::parse(std::path::Path::new("x"), &text).unwrap().mail
}

fn look(user: &str, mail: &Mail) -> Result<Person, AddressError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(look_up(user, mail, None))
}

#[test]
fn the_map_comes_before_the_domain() {
    let mail = mail("address = { domain = \"example.org\", map = { guest = \"g@else.org\" } }");
    assert_eq!(look("guest", &mail).unwrap().address.to_string(), "g@else.org");
    assert_eq!(look("ann", &mail).unwrap().address.to_string(), "ann@example.org");
    assert_eq!(look("a b\r\n", &mail), Err(AddressError::Unusable));
}

#[test]
fn users_of_the_system_are_looked_up() {
    let mail = mail(
        "address = { method = \"passwd\", domain = \"example.org\" }\n\
         greeting = { method = \"passwd\" }",
    );
    assert_eq!(look("root", &mail).unwrap().address.to_string(), "root@example.org");
    assert_eq!(look("no-such-user-x", &mail), Err(AddressError::Unknown));
}
