"""A real SMTP server for tests: keeps what it takes in a Maildir.

The file of orders is read at every step. Its lines: `refuse CODE ADDRESS`, and `stall`, by which mails are kept
and never answered for.
"""

import argparse
import asyncio
import ssl

from aiosmtpd.handlers import Mailbox
from aiosmtpd.smtp import SMTP, AuthResult

arguments = argparse.ArgumentParser()
for name in ("maildir", "orders", "ready"):
    arguments.add_argument(name)
arguments.add_argument("port", type=int)
arguments.add_argument("--tls", choices=("starttls", "tls"))
arguments.add_argument("--certificate")
arguments.add_argument("--key")
arguments.add_argument("--login", help="USER:PASSWORD that everybody needs")
given = arguments.parse_args()


def orders():
    with open(given.orders, encoding="utf-8") as file:
        return [line.split() for line in file if line.strip()]


class Handler(Mailbox):
    async def handle_RCPT(self, server, session, envelope, address, options):
        for order in orders():
            if order[0] == "refuse" and order[2] == address:
                return f"{order[1]} {address} is refused, as ordered"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        answer = await super().handle_DATA(server, session, envelope)
        if ["stall"] in orders():
            await asyncio.sleep(3600)
        return answer


def authenticator(server, session, envelope, mechanism, data):
    said = b":".join((data.login, data.password)).decode()
    return AuthResult(success=said == given.login, handled=False)


async def main():
    context = None
    if given.tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(given.certificate, given.key)
    handler = Handler(given.maildir)
    settings = {"enable_SMTPUTF8": True, "hostname": "localhost"}
    if given.tls == "starttls":
        settings |= {"tls_context": context, "require_starttls": True}
    if given.login:
        settings |= {"authenticator": authenticator, "auth_required": True}
        settings |= {"auth_require_tls": given.tls == "starttls"}
    server = await asyncio.get_running_loop().create_server(
        lambda: SMTP(handler, **settings),
        "127.0.0.1",
        given.port,
        ssl=context if given.tls == "tls" else None,
    )
    open(given.ready, "w").close()
    await server.serve_forever()


asyncio.run(main())
