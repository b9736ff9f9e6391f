"""Reads a mail as another program does and prints it as JSON: headers decoded, parts with their text."""

import email
import email.policy
import json
import sys

message = email.message_from_bytes(sys.stdin.buffer.read(), policy=email.policy.default)
parts = []
for part in message.walk():
    one = {"type": part.get_content_type(), "id": str(part["Content-ID"] or ""), "defects": len(part.defects)}
    if part.get_content_maintype() == "text":
        one["text"] = part.get_content()
    elif not part.is_multipart():
        one["bytes"] = len(part.get_content())
        one["begins"] = part.get_content()[:8].hex()
    parts.append(one)
headers = {}
for name, value in message.items():
    headers.setdefault(name.lower(), []).append(str(value))
print(json.dumps({"headers": headers, "parts": parts}))
