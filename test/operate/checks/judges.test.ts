import { describe, expect, it } from "vitest";
import type { WebAnswer } from "../../../src/slack/web-answer.ts";
import type { CertificateFacts } from "../../../src/operate/checks/certificate.ts";
import { type Finding, exitCodeOf, render } from "../../../src/messages/finding.ts";
import {
  type DirectoryFacts,
  type FolderFacts,
  judgeDirectory,
  judgeFolder,
} from "../../../src/operate/checks/folders.ts";
import { type PolicyFacts, judgePolicy } from "../../../src/operate/checks/policy.ts";
import { storedFinding } from "../../../src/operate/checks/stored-policy.ts";
import { inForce, policyTextOf } from "../../support/policy-text.ts";
import { type RedisFacts, judgeRedis } from "../../../src/operate/checks/redis.ts";
import { type ServiceFacts, judgeService } from "../../../src/operate/checks/service.ts";
import { type SlackFacts, botScopes, judgeSlack } from "../../../src/operate/checks/slack.ts";
import { policyOf } from "../../core/permit/sample.ts";

const now = Date.parse("2026-11-22T12:00:00Z");
const inDays = (days: number) => now + days * 86_400_000;

const says = (data: object, scopes: readonly string[] = botScopes): WebAnswer => ({
  ok: true,
  data: { ...data, response_metadata: { scopes } },
});
const refuses = (error: string): WebAnswer => ({ ok: false, kind: "refused", error, detail: [] });
const silent = (reason: string): WebAnswer => ({ ok: false, kind: "unreachable", reason });
const bot = { user: "gatehouse", team: "Acme", team_id: "T1", bot_id: "B1" };
const slack: SlackFacts = {
  bot: says(bot),
  appId: "A1",
  app: says({}),
  appIdOfToken: "A1",
  mode: "socket",
  certificate: undefined,
  hasAuthorities: false,
  date: now,
  now,
};
const redis: Exclude<RedisFacts, { unusable: string }> = {
  owner: { app: "A1 of Example", isTokenOther: false },
  prefix: "{gatehouse}",
  hint: "set REDIS_NAMESPACE to another name",
  setUp: "redis:6379, alone",
  version: "7.2.5",
  called: undefined,
  roundTripMs: 0.4,
  check: { kind: "ok" },
  storage: [],
  writeProblem: undefined,
  memory: { usedBytes: 2 ** 20, mostBytes: 0 },
};
const certificate: CertificateFacts = {
  host: "compute.example",
  subject: "compute.example",
  issuer: "Acme CA",
  names: ["compute.example"],
  validFrom: inDays(-60),
  validTo: inDays(60),
  expiredAbove: [],
  flaw: undefined,
  code: "",
};
const untrusted = { ...certificate, flaw: "unknown-issuer", code: "SELF_SIGNED" } as const;
const redisTls = { certificate, ownValidTo: inDays(60), hasAuthorities: false, now };
const service: ServiceFacts = {
  host: "compute.example",
  proxy: undefined,
  read: { projects: 1, ms: 12 },
  certificate,
  authorities: false,
  isStrict: false,
  ownValidTo: inDays(60),
  now,
};
const failed = (reason: string | undefined, status?: number) => ({
  read: { reason, status, message: "GET /v1/projects: failed" } as ServiceFacts["read"],
});
const policy: PolicyFacts = {
  policy: policyOf("access: { operate: [S01], approve: [U01, U02, U03] }\nchannels: [C01]\n"),
  isAsked: true,
  people: new Map([
    ["U01", "member"],
    ["U02", "member"],
    ["U03", "member"],
  ]),
  groups: new Map([["S01", ["U01"]]]),
  channels: new Map([["C01", "ok"]]),
  auditReaders: [],
};
/** U01, through a group, and U02 see what pay has. */
const twoTeams = `access: { operate: [S01], approve: [U01, U02, U03], administer: [U02] }
channels: [C01]
teams:
  pay: { projects: [pay], operate: [S01] }
  ml: { projects: [ml], operate: [U03], channel: C01 }
`;
const directory: DirectoryFacts = {
  folder: "/data",
  owner: 1000,
  user: 1000,
  problem: undefined,
  freeBytes: 2 ** 33,
};

const signed: FolderFacts = {
  folder: "/signed",
  user: 1000,
  isFilled: false,
  isEmpty: false,
  problem: undefined,
  problemOfFilling: undefined,
};

const judged = {
  slack: (facts: Partial<SlackFacts>) => judgeSlack({ ...slack, ...facts }),
  redis: (facts: Partial<typeof redis>) => judgeRedis({ ...redis, ...facts }),
  service: (facts: Partial<ServiceFacts>) => judgeService({ ...service, ...facts }),
  policy: (facts: Partial<PolicyFacts>) => judgePolicy({ ...policy, ...facts }),
  directory: (facts: Partial<DirectoryFacts>) => judgeDirectory({ ...directory, ...facts }),
  folder: (facts: Partial<FolderFacts>) => judgeFolder({ ...signed, ...facts }),
};
const judgedStored = (own: string, current: string) => [
  storedFinding(policyTextOf(own), inForce(current), "gatehouse.yml"),
];
const twelve = "version: 12\nprotect: [vault-1]";

/**
 * Each fault alone, in a world that is well otherwise: the only line that isn't ✓, and a part of its mend. Faults that a world can
 * really have are in test/cli/doctor.test.ts.
 */
const faults: [mark: "✗" | "!", findings: readonly Finding[], what: string, mend: string][] = [
  [
    "✗",
    judgedStored("version: 11", twelve),
    "gatehouse.yml has version 11 and needs one above 12, which is in force",
    "raise its version",
  ],
  [
    "✗",
    judgedStored("version: 12", twelve),
    "gatehouse.yml has version 12, which is in force with another content, and needs a higher one",
    "a process with this one changes nothing",
  ],
  [
    "!",
    judgedStored("version: 11\nprotect: [vault-1]\nconfirm: [db-1]", twelve),
    "gatehouse.yml has version 11 and needs one above 12, which is in force",
    "Its rules are those in force",
  ],
  [
    "!",
    judgedStored("version: 13", twelve),
    "in force: version 12 (",
    "The next process that starts with it",
  ],
  [
    "✗",
    judged.slack({ bot: refuses("token_revoked") }),
    "SLACK_BOT_TOKEN: Slack refuses it (token_revoked)",
    "Install the app",
  ],
  [
    "✗",
    judged.slack({ bot: says({ ...bot, bot_id: "" }) }),
    "SLACK_BOT_TOKEN: it is a person's token",
    "xoxb-",
  ],
  ["!", judged.slack({ bot: says(bot, []) }), "scopes: Slack doesn't say", "manifest.yml"],
  [
    "✗",
    judged.slack({ app: refuses("missing_scope") }),
    "SLACK_APP_TOKEN: Slack refuses it (missing_scope)",
    "connections:write",
  ],
  ["✗", judged.slack({ app: silent("timeout") }), "SLACK_APP_TOKEN: Slack didn't answer", "again"],
  [
    "✗",
    judged.slack({ appIdOfToken: "A2" }),
    "SLACK_APP_TOKEN: it is of app A2, the bot token of A1",
    "one app",
  ],
  [
    "!",
    judged.slack({ app: undefined, mode: "http" }),
    "HTTP: the first delivery shows whether SLACK_SIGNING_SECRET is right",
    "gatehouse_refused_deliveries_total",
  ],
  [
    "✗",
    judged.slack({ now: now + 300_000 }),
    "this machine's clock is 5 min ahead of Slack's",
    "NTP",
  ],
  [
    "✗",
    judged.slack({ now: now - 90_000 }),
    "this machine's clock is 1 min 30 s behind Slack's",
    "NTP",
  ],
  ["✗", judged.redis({ version: "5.0.14" }), "Redis 5.0.14", "6.2"],
  ["!", judged.redis({ roundTripMs: 80 }), "round trip: 80.0 ms", "closer"],
  [
    "!",
    judged.redis({ check: { kind: "unchecked", sentence: "doesn't report" } }),
    "doesn't report",
    "provider",
  ],
  [
    "!",
    judged.redis({
      check: { kind: "volatile", why: "", sentence: "keeps nothing", allowed: true },
    }),
    "keeps nothing",
    "for play only",
  ],
  [
    "!",
    judged.redis({ owner: { app: "A1 of Example", isTokenOther: true } }),
    "{gatehouse} is used by the Slack app A1 of Example, which had another bot token",
    "set REDIS_NAMESPACE",
  ],
  [
    "✗",
    judged.redis({ storage: [{ sentence: "REDIS_REPLICAS is 1", stops: true }] }),
    "REDIS_REPLICAS is 1",
    "replicas",
  ],
  [
    "!",
    judged.redis({ storage: [{ sentence: "everysec", stops: false }] }),
    "everysec",
    "promise.md",
  ],
  [
    "✗",
    judged.service(failed("status", 403)),
    "COMPUTE_API_KEY may not read projects (403)",
    "right",
  ],
  ["✗", judged.service(failed("status", 503)), "GET /v1/projects: failed", "problem"],
  ["✗", judged.service(failed("dns")), "GET /v1/projects: failed", "DNS"],
  [
    "✗",
    judged.service(failed("forbidden-address")),
    "GET /v1/projects: failed",
    "COMPUTE_ALLOW_PRIVATE",
  ],
  ["✗", judged.service(failed("redirect", 302)), "GET /v1/projects: failed", "redirects"],
  ["✗", judged.service(failed("answer", 200)), "GET /v1/projects: failed", "login page"],
  [
    "✗",
    judged.service({ ...failed("proxy"), proxy: "proxy:3128" }),
    "through the proxy proxy:3128",
    "NO_PROXY",
  ],
  ["!", judged.service({ read: { projects: 0, ms: 3 } }), "and there is none", "team"],
  [
    "✗",
    judged.service({ certificate: { ...certificate, validTo: inDays(9) } }),
    "9 days left",
    "renewed",
  ],
  [
    "✗",
    judged.service({ certificate: { ...certificate, validTo: inDays(-3) } }),
    "expired 3 days ago",
    "new certificate",
  ],
  [
    "✗",
    judged.service({ certificate: untrusted }),
    '"Acme CA" isn\'t trusted here (SELF_SIGNED)',
    "name the file in CA_FILE",
  ],
  [
    "✗",
    judged.service({ certificate: untrusted, authorities: true }),
    '"Acme CA" isn\'t trusted here',
    "CA_FILE lacks it",
  ],
  [
    "✗",
    judged.service({ certificate: untrusted, authorities: true, isStrict: true }),
    '"Acme CA" isn\'t trusted here',
    "COMPUTE_CA_FILE lacks it",
  ],
  [
    "✗",
    judged.service({ certificate: { ...certificate, flaw: "expired", expiredAbove: ["Acme CA"] } }),
    "Acme CA above it has expired",
    "send the renewed one",
  ],
  [
    "✗",
    judged.service({ certificate: { ...certificate, flaw: "not-yet", validFrom: inDays(2) } }),
    "valid from 2026-11-24 on",
    "clock",
  ],
  [
    "✗",
    judged.slack({
      bot: silent("self-signed certificate in certificate chain"),
      certificate: { ...untrusted, host: "slack.com", subject: "slack.com" },
    }),
    '"Acme CA" isn\'t trusted here',
    "A proxy that inspects",
  ],
  [
    "✗",
    judged.redis({ tls: { ...redisTls, certificate: { ...certificate, validTo: inDays(9) } } }),
    "9 days left",
    "Redis can't be reached",
  ],
  [
    "✗",
    judged.redis({ tls: { ...redisTls, ownValidTo: inDays(-1) } }),
    "REDIS_CERT_FILE: has expired",
    "new certificate",
  ],
  [
    "✗",
    judged.service({ ownValidTo: inDays(-1) }),
    "COMPUTE_CLIENT_CERT_FILE: has expired",
    "new certificate",
  ],
  [
    "✗",
    judgePolicy({ ...policy, policy: policyOf("{}") }, "/srv/gatehouse.yml"),
    "/srv/gatehouse.yml is missing: everyone can view and no one can change anything",
    "GATEHOUSE_CONFIG",
  ],
  [
    "!",
    judged.policy({ groups: new Map([["S01", undefined]]) }),
    "group S01: Slack says nothing",
    "Fix the Slack problems above",
  ],
  [
    "!",
    judged.policy({ policy: policyOf(twoTeams) }),
    "team pay: has no channel, so its alarms are told nowhere",
    "teams.pay",
  ],
  [
    "!",
    judged.policy({
      policy: policyOf(`${twoTeams}audit: { channel: C01 }\n`),
      auditReaders: ["U01", "U02", "U03", "U04"],
    }),
    "which 2 read who can't see what it has: U03, U04",
    "channel",
  ],
  ["!", judged.policy({ isAsked: false }), "not checked", "bot token"],
  [
    "!",
    judged.policy({ policy: policyOf("access: { operate: [S01], approve: [U01] }") }),
    "approvers: 1 (U01)",
    "with one away",
  ],
  [
    "✗",
    judged.policy({
      policy: policyOf(`access: { operate: [S01], approve: [U01, U02, U03] }
approvals: [{ operations: ["vm.*"], votes: [{ from: [U01] }, { from: [S01] }] }]
channels: [C01]
`),
    }),
    "approvals[1].votes: 2 must approve, and of those named only U01 can vote",
    "Name full members",
  ],
  [
    "✗",
    judged.policy({
      policy: policyOf(`access: { operate: [S01], approve: [U01, U02, U03] }
teams: { pay: { projects: [pay], operate: [S01], approve: [S02], channel: C01 } }
`),
      groups: new Map([
        ["S01", ["U01"]],
        ["S02", ["U09"]],
      ]),
      people: new Map([...policy.people, ["U09", "deactivated"]]),
    }),
    "teams.pay.approve: 1 must approve, and nobody named there can vote",
    "Name full members",
  ],
  [
    "✗",
    judged.directory({ problem: "EACCES", owner: 0 }),
    "DATA_DIR: /data can't be written (EACCES); it belongs to user 0, this is user 1000",
    "chown 1000",
  ],
  [
    "✗",
    judged.directory({ problem: "EROFS", owner: undefined }),
    "DATA_DIR: /data can't be made (EROFS)",
    "Mount its file system writable, or name another directory; in a container, give it a volume.",
  ],
  [
    "✗",
    judged.directory({ problem: "ENOSPC" }),
    "DATA_DIR: /data can't be written (ENOSPC)",
    "Free space on its disk, or inodes (df -h, df -i), or name a directory on another one.",
  ],
  [
    "✗",
    judged.directory({ problem: "EDQUOT" }),
    "DATA_DIR: /data can't be written (EDQUOT)",
    "Raise the disk quota of user 1000, or free what counts to it.",
  ],
  [
    "✗",
    judged.directory({ problem: "ENOTDIR", owner: undefined }),
    "DATA_DIR: /data can't be made (ENOTDIR)",
    "A part of its path is a file: name a directory.",
  ],
  [
    "✗",
    judged.directory({ problem: "ENOENT", owner: undefined }),
    "DATA_DIR: /data can't be made (ENOENT)",
    "A part of its path is missing, or is a link to nothing",
  ],
  [
    "✗",
    judged.directory({ problem: "EIO" }),
    "DATA_DIR: /data can't be written (EIO)",
    "Its disk fails",
  ],
  ["!", judged.folder({ isEmpty: true }), "/signed is empty: no VM can be verified", "fill it"],
  [
    "✗",
    judged.folder({ problem: "EACCES" }),
    "attestation.endorsements: /signed can't be read (EACCES): no VM can be verified",
    "Let user 1000 read it, and what is in it.",
  ],
  ["✗", judged.folder({ problem: "ENOTDIR" }), "can't be read (ENOTDIR)", "is a file: name a dir"],
  [
    "!",
    judged.folder({ isFilled: true, problem: "ENOENT" }),
    "attestation.endorsements: /signed isn't there yet",
    "attestation.refresh makes it when the first evidence comes.",
  ],
  [
    "✗",
    judged.folder({ isFilled: true, problem: "ENOENT", problemOfFilling: "EROFS" }),
    "attestation.endorsements: /signed isn't there, and attestation.refresh can't make it (EROFS)",
    "Mount its file system writable",
  ],
  [
    "!",
    judged.folder({ isFilled: true, problemOfFilling: "EACCES" }),
    "attestation.endorsements: attestation.refresh can't fill /signed from here (EACCES)",
    "Let user 1000 write there",
  ],
  ["✗", judged.directory({ freeBytes: 5 * 2 ** 20 }), "DATA_DIR: 5 MiB free", "room"],
];

describe("the doctor", () => {
  it.each(faults)(
    "%s %# names the fault, says what to do, and blames nothing else",
    (mark, findings, what, mend) => {
      const wrong = findings.filter(({ severity: is }) => is !== "well");
      expect(wrong).toHaveLength(1);
      const text = render([{ name: "Part", findings }]);
      expect(text).toContain(`  ${mark} `);
      expect(wrong[0]?.text).toContain(what);
      expect(wrong[0]?.next).toContain(mend);
      expect(exitCodeOf([{ name: "Part", findings }])).toBe(mark === "✗" ? 1 : 0);
    },
  );

  it("finds a world well that is", () => {
    for (const judge of Object.values(judged))
      expect(judge({}).filter(({ severity: is }) => is !== "well")).toEqual([]);
  });
});

it("a server that says that it is Valkey is called so", () => {
  expect(judged.redis({ called: "Valkey 8.1.3" })).toMatchObject(
    expect.arrayContaining([{ severity: "well", text: "redis:6379, alone, Valkey 8.1.3" }]),
  );
});
