"""A receiver of webhooks that takes what is signed with its secret: PORT SECRET-FILE LOG"""

import hashlib
import hmac
import http.server
import json
import sys
import time

port, secret_file, log = int(sys.argv[1]), sys.argv[2], sys.argv[3]


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(204)
        self.end_headers()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        stamp = self.headers.get("X-Steward-Timestamp", "0")
        with open(secret_file, "rb") as file:
            secret = file.read().strip()
        expected = "sha256=" + hmac.new(secret, stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
        signed = hmac.compare_digest(expected, self.headers.get("X-Steward-Signature", ""))
        good = signed and abs(time.time() - int(stamp)) < 300
        if good:
            with open(log, "a", encoding="utf-8") as file:
                event = self.headers["X-Steward-Event"]
                file.write(json.dumps({"event": event, "body": json.loads(body)}) + "\n")
        self.send_response(204 if good else 401)
        self.end_headers()

    def log_message(self, *_):
        pass


http.server.HTTPServer(("127.0.0.1", port), Receiver).serve_forever()
