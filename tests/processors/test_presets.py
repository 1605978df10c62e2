"""The preset rules: what they find, what they leave alone, and that no cut of the text changes either."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterable

import pytest

from interlock.core.errors import UsageError
from interlock.processors.presets import PRESETS, PresetRule, preset_rules
from interlock.release.scanner import Rule, Span, TextScanner

RULES = {rule.name: rule for preset in PRESETS.values() for rule in preset}

MIXED = "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY" * 8
HEX = "0123456789abcdef" * 4
BODY = "\n".join(("MIIEvQIBADANBgkq" + MIXED)[at : at + 64] for at in range(0, 192, 64))


def b64(fields: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")


HEADER = b64({"alg": "HS256", "typ": "JWT"})
CLAIMS = b64({"sub": "4711", "name": "Ada"})

# In a true example the match stands between « and »; there may be several.
TRUE: dict[str, list[str]] = {
    "email": [
        "Write to «ada@example.com», please.",
        "«ada.lovelace+news@mail.example.co.uk»",
        "mailto:«ada@example.org»?subject=hi",
        "<«ada-l@example.museum»>",
        "_«o'brien@example.ie»_ wrote it",
        "«jörg@münchen.example» and «x_y@1und1.example»",
        "?email=«ada@example.com»&page=2",
        "Ask «ada@example.com».",
    ],
    "card": [
        "Card «4539 1488 0343 6467», thanks",
        "«4539148803436467»",
        "«4539-1488-0343-6467» 124",
        "ref «5432 1111 4539 1488 0343 6467» and «4539 1488 0343 6467» 2027",
        "amex «3714 496353 98431»",
        "diners «3056 930902 5904».",
        "12 «4539 1488 0343 6467»",
        "«5555\u00a05555\u00a05555\u00a04444» and «4222222222222»",
        "«45 39-14 88-0343 6467»",
        "«4539\u20111488\u20110343\u20116467»",
    ],
    "iban": [
        "«DE89 3704 0044 0532 0130 00» is it",
        "«DE89370400440532013000».",
        "IBAN:«GB29 NWBK 6016 1331 9268 19»",
        "«AT61 1904 3002 3457 3201» EUR",
        "«FR14 2004 1010 0505 0001 3M02 606»,",
        "«NO93 8601 1117 947»",
        "«ch9300762011623852957»",
        "«MT84MALT011000012345MTLCAST001S»",
    ],
    "ssn": [
        "SSN «536-22-8841».",
        "«536 22 8841»",
        "ssn:«001-01-0001»",
        "(«899-99-9999»)",
        "«536\u201122\u20118841»",
        "«665-12-3456», «667-12-3456»",
    ],
    "phone": [
        "Call «+1 415 555 2671» now",
        "Call «(415) 555-2671».",
        "«415-555-2671» or «415.555.2672»",
        "tel:«+14155552671»",
        "«+49 30 901820»",
        "«+44 20 7946 0958»",
        "«1-800-234-5678»",
        "«+33 (0)1 42 68 53 00»",
        "«+1 415 555 2671» 24/7",
    ],
    "ip": [
        "at «192.168.0.17».",
        "http://«10.0.0.1»:8080/",
        "«255.255.255.255»",
        "«10.0.0.1»-«10.0.0.9», «10.1.0.0»/16",
        "ping «2001:db8::8a2e:370:7334»",
        "[«fe80::1»]:443 and «::1»",
        "«2001:db8:0:0:0:0:0:1»: unreachable",
        "«::ffff:192.0.2.128»",
        "«2001:db8::»/32",
    ],
    "aws-key": [
        "«AKIAQZ7XJ2M4N5P6R7ST»",
        "key=«ASIAQZ7XJ2M4N5P6R7ST»,",
        '"«AKIA2E0A8F3B9C1D7G4H»"',
        "_«AKIAQZ7XJ2M4N5P6R7ST»_",
        "id: «AKIAABCDEFGHIJKLMNOP».",
        "«AKIAQZ7XJ2M4N5P6R7ST»/20240105/us-east-1",
    ],
    "aws-secret": [
        f"aws_secret_access_key = «{MIXED[:40]}»",
        f"AWS_SECRET_ACCESS_KEY=«{MIXED[:38]}/+»",
        f'"SecretAccessKey": "«{MIXED[3:43]}»"',
        f"aws_secret_key: '«{MIXED[5:45]}»'",
        f"export AWS_SECRET_ACCESS_KEY=«{MIXED[:40]}»\n",
        f"AWS secret access key: «{MIXED[:40]}».",
    ],
    "github-token": [
        f"«ghp_{MIXED[:36]}»",
        f"token «gho_{MIXED[:36]}».",
        f"«ghu_{MIXED[:36]}» «ghs_{MIXED[:40]}»",
        f"https://«ghr_{MIXED[:76]}»@github.com",
        f"«github_pat_{MIXED[:22]}_{MIXED[:59]}»",
        f"GITHUB_TOKEN=«ghp_{MIXED[4:40]}»",
    ],
    "gitlab-token": [
        f"«glpat-{MIXED[:27]}.01.0a1b2c3d4», «glffct-{MIXED[:20]}»",
        f"«GR1348941{MIXED[:20]}»",
        f"«glpat-{MIXED[:20]}»",
        f"PRIVATE-TOKEN: «glpat-{MIXED[:9]}_{MIXED[:10]}»",
        f"«gldt-{MIXED[:20]}»",
        f"«glrt-{MIXED[:20]}».",
        f"'«glptt-{MIXED[:40]}»'",
        f"oauth2:«glpat-{MIXED[:20]}»@gitlab.com",
    ],
    "slack-token": [
        f"«xoxd-{MIXED[:20]}%2B{MIXED[:60]}%3D»",
        f"«xoxb-123456789012-{MIXED[:24]}»",
        f"«xoxp-1234567890-1234567890-{MIXED[:24]}»",
        f"«xoxa-2-{MIXED[:24]}»,",
        f"«xapp-1-A0123-{MIXED[:24]}»",
        f"SLACK=«xoxs-{MIXED[:24]}»",
        f"«https://hooks.slack.com/services/T0123/B0456/{MIXED[:24]}»",
    ],
    "stripe-key": [
        f"«sk_org_live_{MIXED[:24]}»",
        f"«sk_live_{MIXED[:24]}»",
        f"«sk_test_{MIXED[:24]}».",
        f"«rk_live_{MIXED[:24]}»",
        f"STRIPE=«rk_test_{MIXED[:99]}»",
        f"'«whsec_{MIXED[:32]}»'",
        f"Bearer «sk_test_{MIXED[:16]}»",
    ],
    "openai-key": [
        f"«sk-{MIXED[:48]}»",
        f"«sk-proj-{MIXED[:20]}-{MIXED[:20]}_{MIXED[:40]}»",
        f"OPENAI_API_KEY=«sk-{MIXED[:20]}T3BlbkFJ{MIXED[:20]}».",
        f"«sk-svcacct-{MIXED[:64]}»",
        f'"«sk-admin-{MIXED[:64]}»"',
        f"«sk-{HEX[:32]}»",
    ],
    "anthropic-key": [
        f"«sk-ant-api03-{MIXED[:80]}-{MIXED[:12]}AA»",
        f"«sk-ant-admin01-{MIXED[:80]}»",
        f"ANTHROPIC_API_KEY=«sk-ant-api03-{MIXED[:93]}».",
        f"x-api-key: «sk-ant-api03-{MIXED[:40]}_{MIXED[:40]}»",
        f"'«sk-ant-oat01-{MIXED[:80]}»'",
        f"«sk-ant-{MIXED[:20]}»",
    ],
    "google-key": [
        f"«ya29.a0{MIXED[:150]}», «AQ.Ab8{MIXED[:46]}»",
        f"«AIza{MIXED[:35]}»",
        f"key=«AIzaSy{MIXED[:33]}»&q=1",
        f'"«AIzaSy{MIXED[:31]}-_»"',
        f"«GOCSPX-{MIXED[:28]}»",
        f"«AIzaSy{MIXED[7:40]}».",
        f"(«AIza{MIXED[9:44]}»)",
    ],
    "huggingface-token": [
        f"«hf_{MIXED[:34]}»",
        "«hf_abcdefghijKLMNOPQRSTuvwxyzABCDEFGH»",
        f"HF_TOKEN=«hf_{MIXED[:37]}».",
        f"«api_org_{MIXED[:34]}»",
        f"'«hf_{MIXED[5:39]}»'",
        f"Bearer «hf_{MIXED[9:43]}»",
    ],
    "sendgrid-key": [
        f"«SG.{MIXED[:22]}.{MIXED[:43]}»",
        f"key «SG.{MIXED[3:25]}.{MIXED[1:44]}».",
        f"SENDGRID=«SG.{MIXED[:20]}-_.{MIXED[:43]}»",
        f"'«SG.{MIXED[:22]}.{MIXED[:40]}-_x»'",
        f"(«SG.{MIXED[4:26]}.{MIXED[:43]}»)",
        f"Bearer «SG.{MIXED[:22]}.{MIXED[2:45]}»\n",
    ],
    "twilio-key": [
        f"«SK{HEX[:32]}»",
        f"«AC{HEX[3:35]}».",
        f"/Accounts/«AC{HEX[5:37]}»/Messages",
        f"sid=«AC{HEX[:32]}»",
        f"'«SK{HEX[9:41]}»'",
        f"«SK{HEX[:32]}»:secret",
    ],
    "ai-key": [
        f"GROQ_KEY=«gsk_{MIXED[:52]}»",
        f"«xai-{MIXED[:80]}».",
        f"'«pplx-{MIXED[:48]}»'",
        f"key «r8_{MIXED[:37]}»",
        f"(«sk-or-v1-{HEX}»)",
        "«sk-lf-12345678-1234-1234-1234-123456789abc»",
        f"«lsv2_pt_{HEX[:32]}_{HEX[:10]}»",
        f"«ABSK{MIXED[:128]}=»",
        f"«nvapi-{MIXED[:64]}» «tvly-dev-{MIXED[:32]}»",
        f"«sk_{HEX[:48]}», «fw_{MIXED[:24]}»",
    ],
    "service-token": [
        f"«dop_v1_{HEX}»",
        f"token: «dapi{HEX[:32]}»",
        f"«shpat_{HEX[:32]}».",
        f"«lin_api_{MIXED[:40]}»",
        f"«secret_{MIXED[:43]}» and «ntn_{MIXED[:46]}»",
        f"«hvs.{MIXED[:90]}»",
        f"«glsa_{MIXED[:32]}_{HEX[:8]}»",
        f"«ATATT3{MIXED[:180]}=»",
        f"«123456789:AA{MIXED[:33]}»",
        f"https://api.telegram.org/bot«123456789:AA{MIXED[:33]}»/getMe",
        f"«M{MIXED[:23]}.{MIXED[:6]}.{MIXED[:38]}»",
        f"«https://discord.com/api/webhooks/123456789012345678/{MIXED[:68]}»",
        f"«PMAK-{HEX[:24]}-{HEX[:34]}», «NRAK-{'A1B2C3D4E5F6G7H8I9J0K1L2M3N'}»",
        f"«dckr_pat_{MIXED[:27]}» «rubygems_{HEX[:48]}»",
        f"«key-{HEX[:32]}»",
    ],
    "npm-token": [
        f"«npm_{MIXED[:36]}»",
        f"_authToken=«npm_{MIXED[1:37]}»",
        f"//registry/:_authToken=«npm_{MIXED[2:38]}»\n",
        f"'«npm_{MIXED[3:39]}»'",
        f"«npm_{MIXED[4:40]}».",
        f"NPM_TOKEN: «npm_{MIXED[5:41]}»",
    ],
    "pypi-token": [
        f"«pypi-AgEIcHlwaS5vcmc{MIXED[:130]}»",
        f"password = «pypi-AgEIcHlwaS5vcmc{MIXED[:100]}-_x»",
        f"«pypi-AgENdGVzdC5weXBpLm9yZw{MIXED[:120]}».",
        f"'«pypi-AgEIcHlwaS5vcmc{MIXED[:60]}»'",
        f"__token__:«pypi-AgEIcHlwaS5vcmc{MIXED[:90]}»",
        f"(«pypi-AgEIcHlwaS5vcmc{MIXED[:91]}»)",
    ],
    "azure-key": [
        f"https://a.blob.core.windows.net/c?sv=2022-11-02&«sig={MIXED[:43]}%3D»",
        f"abc8«Q~{MIXED[:34]}»",
        f"AccountName=a;AccountKey=«{MIXED[:86]}==»;EndpointSuffix=core.windows.net",
        f"AccountKey=«{MIXED[:84]}/+==»",
        f"accountkey=«{MIXED[1:87]}==».",
        f"SharedAccessKeyName=x;SharedAccessKey=«{MIXED[:43]}=»",
        f"'AccountKey=«{MIXED[2:88]}==»'",
        f"AccountKey=«{MIXED[3:89]}==»\nnext",
    ],
    "pem": [
        f"«-----BEGIN PRIVATE KEY-----\n{BODY}\n-----END PRIVATE KEY-----»\n",
        f"It is «-----BEGIN RSA PRIVATE KEY-----\n{BODY}\n-----END RSA PRIVATE KEY-----».",
        f"«-----BEGIN EC PRIVATE KEY-----\\n{MIXED[:64]}\\n-----END EC PRIVATE KEY-----»\\n",
        f"«-----BEGIN OPENSSH PRIVATE KEY-----\n    {BODY}\n    -----END OPENSSH PRIVATE KEY-----»",
        "«-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,0A1B\n\n"
        f"{BODY}\n-----END RSA PRIVATE KEY-----»",
        f"«-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: X v2\n\n{BODY}\n-----END PGP PRIVATE KEY BLOCK-----»",
        f"cut off: «-----BEGIN PRIVATE KEY-----\n{BODY}»",
    ],
    "jwt": [
        f"«{HEADER}.{CLAIMS}.{MIXED[:43]}»",
        f"Bearer «{HEADER}.{CLAIMS}.{MIXED[:86]}»,",
        f"token=«{b64({'alg': 'RS256', 'kid': 'a-1'})}.{CLAIMS}.{MIXED[:100]}»",
        f"«{b64({'typ': 'JWT', 'alg': 'none'})}.{CLAIMS}.»",
        f"'«{HEADER}.{CLAIMS}.{MIXED[:20]}-_{MIXED[:20]}»'",
        f"?t=«{HEADER}.{CLAIMS}.{MIXED[5:48]}»&x=1",
    ],
    "connection-string": [
        "«postgres://ada:hunter2@db.example.com:5432/app?sslmode=require»",
        'DATABASE_URL="«postgresql+asyncpg://ada:p%40ss@localhost/app»"',
        "«mongodb+srv://ada:hunter2@cluster0.abc.mongodb.net/test?retryWrites=true».",
        "«redis://:hunter2@cache:6379/0»",
        "«mysql://root:hunter2@127.0.0.1»,",
        "«amqp://guest:guest@rabbit:5672/%2F» is the queue",
        "«https://ada:hunter2@git.example.com/repo.git»",
    ],
    "credential": [
        'password="«hunter2hunter2»"',
        "DB_PASSWORD=«Tr0ub4dor&3»\n",
        f"api_key: «{MIXED[:32]}»",
        f'{{"apiKey": "«{HEX[:32]}»"}}',
        f"client_secret = '«{MIXED[:24]}»'",
        f"Authorization: Bearer «{MIXED[:40]}»",
        "the password: «S3cure!Pass», keep it",
        f"access_token=«{MIXED[:30]}»",
    ],
    "url": [
        "«wss://example.com/socket»",
        "See «https://example.com/a/b?c=d#e».",
        "(«http://localhost:8000»)",
        "[docs](«https://en.wikipedia.org/wiki/Pipe_(computing)»), then",
        "«ftp://ftp.example.com/pub/x.tar.gz», «HTTPS://EXAMPLE.COM»",
        "visit «www.example.com» or «www.example.co.uk/path?x=1»!",
        "<«https://user@example.com»>",
        "**«https://example.com/?q=a,b»**",
        "«http://[2001:db8::1]:8080/x»",
    ],
}

PLAIN = [
    "It cost $1,234,567.89 on 2024-01-05 at 12:30:45, not 3.14159265358979.",
    "id 550e8400-e29b-41d4-a716-446655440000, hash d41d8cd98f00b204e9800998ecf8427e",
    "Order 1002345678 of 05.01.2024; version 1.2.3.4.5, task-force, sk-learn, ask-me-anything-about-this",
    "for (let i = 0; i < 10; i++) { std::cout << a[i] << ::endl; }",
]
FALSE: dict[str, list[str]] = {
    "email": [
        "a@b",
        "@ada",
        "a@b.c",
        "ada@",
        "react@18.2.0",
        "lib@1.2.beta",
        "icon@2x.png",
        "git@github.com:a/b.git",
        "ada at example.com",
        "ada@-example.com",
        "x @y.com",
    ],
    "card": [
        "4539 1488 0343 6468",
        "4539148803436468",
        "4444444444444444",
        "00004539148803436467",
        "0.4539148803436467",
        "x4539148803436467",
        "4539148803436467a",
        "4539  1488  0343  6467",
        "4539 1488 0343",
        "1700000000000",
        "550e8400-e29b-41d4-4539-148803436467",
        "1 2 3 4 5 6 7 8 9 10 11 12",
    ],
    "iban": [
        "DE89 3704 0044 0532 0130 01",
        "DE8937040044053201300",
        "DE893704004405320130000",
        "XX89370400440532013000",
        "XDE89370400440532013000",
        "GB29 NWBK 6016 1331 9268 1",
        "DE 89 is a road",
        "AT61 1904 3002 3457 3202",
        "ISBN 978-3-16-148410-0",
    ],
    "ssn": [
        "000-12-3456",
        "666-12-3456",
        "900-12-3456",
        "536-00-8841",
        "536-22-0000",
        "1536-22-8841",
        "536-22-88410",
        "536228841",
        "536-22 8841",
        "A-536-22-8841",
        "2024-01-05",
        "415-555-2671",
    ],
    "phone": [
        "2024-01-05",
        "415-555-26711",
        "123-456-7890",
        "4155552671",
        "+1 415 555",
        "555-2671",
        "1.2.3.4.5",
        "3+4155552671",
        "v415.555.2671",
        "$415,555,2671",
        "192.168.100.200",
        "+99 123 456 789",
    ],
    "ip": [
        "x[:, ::2] arr[::2] arr[1::2] rows[::1] 10::20",
        "section 4.5.6.7 and Chapter 1.2.3.4",
        "release 10.4.0.1",
        "1.2.3.4.5",
        "256.1.1.1",
        "v1.2.3.4",
        "1.2.3",
        "01.02.03.04",
        "12:30:45",
        "00:1a:2b:3c:4d:5e",
        "std::vector",
        "a ::add b",
        "1.2.3.4567",
        "::",
        "version 1.2.3.4",
        "1:2",
        "12345::1",
    ],
    "aws-key": [
        "AKIA",
        "AKIAQZ7XJ2M4N5P6R7S",
        "AKIAQZ7XJ2M4N5P6R7STX",
        "XAKIAQZ7XJ2M4N5P6R7ST",
        "akiaqz7xj2m4n5p6r7st",
        "AKIA-QZ7XJ2M4N5P6R7",
        "ASIA PACIFIC REGION",
        "ASIAqz7xj2m4n5p6r7st",
    ],
    "aws-secret": [
        MIXED[:40],
        f"sha1 = {HEX[:40]}",
        f"aws_secret_access_key = {MIXED[:39]}",
        f"aws_secret_access_key = {MIXED[:41]}",
        "aws_secret_access_key = os.environ['X']",
        "aws_secret_access_key=",
        f"aws_access_key_id = {MIXED[:40]}",
        f"secret {MIXED[:40]}",
    ],
    "github-token": [
        "ghp_",
        "ghp_short",
        f"ghx_{MIXED[:36]}",
        f"ghp-{MIXED[:36]}",
        f"xghp_{MIXED[:36]}",
        "github_pat_x",
        f"ghp_{MIXED[:35]}",
        f"GHP_{MIXED[:36]}",
        "github_patch_for_the_thing",
    ],
    "gitlab-token": [
        "glpat-",
        "glpat-short",
        f"glpat_{MIXED[:20]}",
        f"xglpat-{MIXED[:20]}",
        f"glpat-{MIXED[:19]}",
        f"glxyz-{MIXED[:20]}",
        "glpat-this-is-a-placeholder-only",
        "gl-pattern",
    ],
    "slack-token": [
        "xoxb",
        "xoxo-hugs-and-kisses",
        "xoxb-short",
        f"xoxz-{MIXED[:24]}",
        f"axoxb-{MIXED[:24]}",
        "xoxb-your-token-goes-here",
        "https://hooks.slack.com/",
        "https://slack.com/services/T1/B2/abc",
    ],
    "stripe-key": [
        "sk_live_",
        "sk_live_short",
        f"pk_live_{MIXED[:24]}",
        f"sk_prod_{MIXED[:24]}",
        f"task_live_{MIXED}",
        f"sk-live-{MIXED[:24]}",
        "sk_test_mode_is_for_testing_x",
        "risk_test_abcdefghijklmnopq",
    ],
    "openai-key": [
        "sk-",
        "sk-learn",
        "sk-short1",
        "ask-me-anything-about-this-thing-1",
        f"task-{MIXED[:48]}",
        f"sk_{MIXED[:48]}",
        "sk-proj-your-own-key-comes-here",
        "sk-abcdefghijklmnopqrstuvwxyz",
        f"sk-ant-api03-{MIXED[:80]}",
        "sk-1234-this-is-a-slug-with-hyphens",
    ],
    "anthropic-key": [
        "sk-ant-",
        "sk-ant-api03-short",
        f"sk-{MIXED[:48]}",
        "sk-ant-your-own-key-comes-here",
        f"task-ant-{MIXED[:40]}",
        f"sk_ant_{MIXED[:40]}",
        f"sk-and-{MIXED[:40]}",
        "sk-antarctica-2024",
    ],
    "google-key": [
        "AIza",
        f"AIza{MIXED[:34]}",
        f"AIza{MIXED[:36]}",
        f"aiza{MIXED[:35]}",
        f"xAIza{MIXED[:35]}",
        f"AIzb{MIXED[:35]}",
        "GOCSPX-short",
        f"AIza {MIXED[:35]}",
    ],
    "huggingface-token": [
        "hf_",
        "hf_hub_download",
        f"hf_{MIXED[:20]}",
        f"shf_{MIXED[:34]}",
        f"hf-{MIXED[:34]}",
        "hf_transformers_is_a_library_with_models",
        f"HF_{MIXED[:34]}",
        f"hf_{MIXED[:80]}",
    ],
    "sendgrid-key": [
        "SG.",
        f"SG.{MIXED[:21]}.{MIXED[:43]}",
        f"SG.{MIXED[:22]}.{MIXED[:42]}",
        f"sg.{MIXED[:22]}.{MIXED[:43]}",
        f"SG.{MIXED[:22]}.{MIXED[:44]}",
        f"MSG.{MIXED[:22]}.{MIXED[:43]}",
        f"SG-{MIXED[:22]}.{MIXED[:43]}",
        "SG. is Singapore",
    ],
    "twilio-key": [
        "SK",
        f"SK{HEX[:31]}",
        f"SK{HEX[:33]}",
        f"sk{HEX[:32]}",
        f"XSK{HEX[:32]}",
        f"AC{HEX[:32].upper()}",
        f"AC-{HEX[:32]}",
        HEX[:32],
        "AC" + "abcdefab" * 4,
    ],
    "ai-key": [
        "gsk_",
        "gsk_production_key_number_1",
        "xai-grok-2-latest",
        "pplx-70b-online",
        f"xgsk_{MIXED[:52]}",
        "r8_re_match_1",
        "fw_version_1234567890_and_more_of_it",
        "sk-or-v1-",
        "lsv2_pt_",
        "nvapi-",
    ],
    "service-token": [
        "dop_v1_",
        "dapi",
        "secret_santa_list_2024_for_everyone_in_the_office_of_ours",
        f"secret_{MIXED[:44]}",
        "hvs.short1",
        "key-value-store-2024",
        f"12345678:AA{MIXED[:20]}",
        "lin_api_docs_v2",
        f"key-{HEX[:33]}",
        "Module.method.1234567890123456789012345678",
        "https://discord.com/channels/123456789012345678/1",
        "AGE-SECRET-KEY-1",
    ],
    "npm-token": [
        "npm_",
        "npm_config_registry",
        f"npm_{MIXED[:35]}",
        f"npm_{MIXED[:37]}",
        f"npm-{MIXED[:36]}",
        f"xnpm_{MIXED[:36]}",
        f"NPM_{MIXED[:36]}",
        "npm_lifecycle_event",
    ],
    "pypi-token": [
        "pypi-",
        "pypi-AgE",
        f"pypi-{MIXED[:60]}",
        f"pypi_AgEIcHlwaS5vcmc{MIXED[:60]}",
        "pypi-Agent-based-modelling",
        f"xpypi-AgEIcHlwaS5vcmc{MIXED[:60]}",
        f"PYPI-AgEIcHlwaS5vcmc{MIXED[:60]}",
        f"pypi-AgEIcHlwaS5vcmc{MIXED[:30]}",
    ],
    "azure-key": [
        "AccountKey=",
        f"AccountKey={MIXED[:85]}==",
        f"AccountKey={MIXED[:86]}=",
        f"AccountKey={MIXED[:87]}==",
        f"{MIXED[:86]}==",
        f"AccountName={MIXED[:86]}==",
        f"AccountKey: {MIXED[:86]}==",
        "AccountKey=<key>",
    ],
    "pem": [
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY----- starts it, -----END PRIVATE KEY----- ends it",
        f"-----BEGIN PUBLIC KEY-----\n{BODY}\n-----END PUBLIC KEY-----",
        f"-----BEGIN CERTIFICATE-----\n{BODY}\n-----END CERTIFICATE-----",
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
        "----- PRIVATE KEY -----",
        "-----END PRIVATE KEY-----",
        f"---BEGIN PRIVATE KEY---\n{BODY}\n---END PRIVATE KEY---",
        "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG cut",
    ],
    "jwt": [
        HEADER,
        f"{HEADER}.{CLAIMS}",
        f"{b64({'typ': 'JWT'})}.{CLAIMS}.{MIXED[:43]}",
        f"eyJhbGciOi.{CLAIMS}.{MIXED[:43]}",
        f"x{HEADER}.{CLAIMS}.{MIXED[:43]}",
        f"{CLAIMS}.{CLAIMS}.{MIXED[:43]}",
        "eyJ.eyJ.abc",
        "one.two.three",
        f"{b64([1, 2, 'alg'])}.{CLAIMS}.{MIXED[:43]}",
        "eyewitness.accounts.differing",
    ],
    "connection-string": [
        "postgres://localhost/app",
        "postgres://ada@localhost/app",
        "postgres://ada:$PASSWORD@localhost",
        "postgres://ada:{password}@localhost",
        "mongodb://ada:***@localhost",
        "http://localhost:8000/a@b",
        "redis://cache:6379/0",
        "postgres://<user>:<password>@host",
        "the scheme is postgres://",
    ],
    "credential": [
        "password: required",
        "password = os.environ['PW1']",
        "password=$DB_PASSWORD1",
        "api_key = get_key1()",
        "api_key: settings.openai.key1",
        "Forgot your password?",
        "password: short1",
        "password = self.password2",
        "token=4096",
        "secret: <your-secret-1>",
        "the secret of 12345678",
        "api_key={{ API_KEY1 }}",
    ],
    "url": [
        "http://",
        "https://...",
        "www",
        "www.",
        "example.com",
        "www.example",
        "mailto:a@b.com",
        "file:///etc/hosts",
        "http:/example.com",
        "ada@www.example.com",
        "xwww.example.com",
    ],
}


def expected(marked: str) -> tuple[str, list[tuple[int, int]]]:
    text, places = "", list[tuple[int, int]]()
    for piece in marked.split("«"):
        inner, mark, after = piece.partition("»")
        if mark:
            places.append((len(text), len(text) + len(inner)))
        text += inner + after
    return text, places


def spans(rules: Iterable[Rule], *pieces: str) -> list[Span]:
    scanner, offset, found = TextScanner(list(rules)), 0, list[Span]()
    for index, piece in enumerate(pieces):
        decided, placed = scanner.feed(piece, final=index == len(pieces) - 1)
        found += [span.replace(start=span.start + offset, end=span.end + offset) for span in placed]
        offset += len(decided)
    assert offset == sum(map(len, pieces))
    return found


def places(rule: PresetRule, text: str) -> list[tuple[int, int]]:
    return [(span.start, span.end) for span in spans(rule.rules(), text)]


def test_every_rule_has_examples() -> None:
    """Every rule of every preset has true and false ones."""
    assert set(TRUE) == set(FALSE) == set(RULES)
    assert all(len(examples) >= 6 for examples in TRUE.values())
    assert all(len(examples) >= 8 for examples in FALSE.values())


@pytest.mark.parametrize(
    ("name", "marked"), [(name, each) for name, examples in TRUE.items() for each in examples]
)
def test_finds(name: str, marked: str) -> None:
    """A rule finds its true examples, whole, and nothing else in them (spec R0)."""
    text, where = expected(marked)
    assert places(RULES[name], text) == where


@pytest.mark.parametrize(
    ("name", "text"), [(name, each) for name, examples in FALSE.items() for each in [*examples, *PLAIN]]
)
def test_leaves_alone(name: str, text: str) -> None:
    """What only looks like it (a wrong checksum, a version, a date) is left, alone and in a sentence."""
    assert places(RULES[name], text) == []
    assert places(RULES[name], f"So {text} it is.") == []


@pytest.mark.parametrize("name", RULES)
def test_no_cut_changes_what_is_found(name: str) -> None:
    """Each example, cut anywhere: the same spans as in the whole text (spec R0.1)."""
    rules = RULES[name].rules()
    assert not any(rule.pattern.needs_whole_text for rule in rules)
    for text in [*(expected(marked)[0] for marked in TRUE[name]), *FALSE[name], *PLAIN]:
        whole = spans(rules, text)
        assert spans(rules, *text) == whole
        for cut in range(1, len(text)):
            assert spans(rules, text[:cut], text[cut:]) == whole


@pytest.mark.parametrize("preset", PRESETS)
def test_the_whole_preset_over_everything(preset: str) -> None:
    """All rules of a preset over all examples, in pieces of any size: the same spans (spec R0.1)."""
    rules = preset_rules(preset)
    text = "\n".join([*(expected(each)[0] for name in RULES for each in TRUE[name][:3]), *PLAIN])
    whole = spans(rules, text)
    for size in (1, 7, 100):
        assert spans(rules, *(text[at : at + size] for at in range(0, len(text), size))) == whole


def test_a_word_of_prose_is_all_that_waits() -> None:
    """Plain text leaves word by word, whatever presets are on (spec R0.2)."""
    scanner = TextScanner([rule for preset in PRESETS for rule in preset_rules(preset)])
    for word in (
        "The answer ",
        "is: it ",
        "begins with -----BEGIN PRIVATE KEY----- and ",
        "so on, in 2024, ",
        "you see. ",
    ):
        scanner.feed(word)
        assert scanner.held <= 6
    scanner.feed("No, really")
    assert scanner.held <= 6


@pytest.mark.parametrize(
    "text",
    ["a" * 50_000, "1" * 50_000, "1 " * 25_000, "a." * 25_000, "a@" * 25_000, "-----BEGIN PRIVATE KEY-----\n" * 1500,
     "-----BEGIN PRIVATE KEY-----\n" + "A" * 50_000, "eyJ" * 15_000, "eyJ." * 12_000, "http://" * 7_000, "1:" * 25_000,
     "password=" * 5_000, "DE89 " * 10_000, "+1" * 25_000, "postgres://a:" * 4_000, "(" * 50_000, "www." * 12_000],
)  # fmt: skip
def test_hostile_texts_are_done(text: str) -> None:
    """A text made to be slow is judged; a search that took too long would raise (slow machines get more time)."""
    rules = [rule for preset in PRESETS for rule in preset_rules(preset)]
    for rule in rules:
        rule.pattern._timeout = 60
    try:
        spans(rules, text)
    finally:
        for rule in rules:
            rule.pattern._timeout = 1.0


def test_a_region_has_its_national_numbers() -> None:
    """Numbers without a country code are those of the region that is given."""
    rules = {region: [rule for rule in preset_rules("pii", region=region) if rule.name == "phone"]
             for region in ("US", "DE", "FR", "GB", "DK")}  # fmt: skip

    def found(region: str, text: str) -> list[str]:
        whole = spans(rules[region], text)
        assert spans(rules[region], *text) == whole
        return [text[span.start : span.end] for span in whole]

    assert found("DE", "Tel. 030 901820, am 05.01.2024") == ["030 901820"]
    assert found("DE", "0171/2345678 und (030) 901820.") == ["0171/2345678", "(030) 901820"]
    assert found("FR", "au 01.42.68.53.00 ou 01 42 68 53 00") == ["01.42.68.53.00", "01 42 68 53 00"]
    assert found("GB", "on 020 7946 0958 at 12:30") == ["020 7946 0958"]
    assert found("DK", "ring 32 12 34 56 den 2024-01-05 12:30") == ["32 12 34 56"]
    assert found("US", "030 901820, 01 42 68 53 00") == []
    assert found("DE", "Bestellung 1002345678 und 4155552671, 1.234.567,89") == []


def test_an_unknown_region_or_preset_is_an_error() -> None:
    """Told at set-up, with what there is."""
    with pytest.raises(UsageError, match="no region 'XX'"):
        preset_rules("pii", region="XX")
    with pytest.raises(UsageError, match="there is pii, secrets, urls"):
        preset_rules("pi")


def test_phonenumbers_is_needed_for_phones_only() -> None:
    """Without the extra the other presets work; the error names the command that installs it."""
    program = """
import sys
sys.modules["phonenumbers"] = None
import interlock
from interlock.processors.presets import PRESETS, preset_rules
assert "regex" not in sys.modules
preset_rules("secrets"), preset_rules("urls")
[rule.rules() for rule in PRESETS["pii"] if rule.name != "phone"]
try:
    preset_rules("pii")
except interlock.UsageError as problem:
    print(problem)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install 'interlock[pii]'" in done.stdout
