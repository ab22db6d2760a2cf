import type { Patch } from "../stage/patch.ts";

/** One safeguard taken away. */
export interface Mutation extends Patch {
  name: string;
  /** Rows that must notice. */
  rows: string;
}

export const mutations: readonly Mutation[] = [
  {
    name: "the ledger is not compared with the journal",
    file: "src/requests/journal/ledger.ts",
    was: "if (missing.length > 0) {",
    is: "if (missing.length > 1e9) {",
    rows: "R3",
  },
  {
    name: "the first reason to freeze keeps a weightier one away",
    file: "src/requests/journal/freeze.ts",
    was: "if (more < weighs) return undefined;",
    is: "return undefined;",
    rows: "R3",
  },
  {
    name: "the ledger does not stand in the way of a send",
    file: "src/requests/journal/ledger.ts",
    was: "if (ids.has(idOf(entry))) return false;",
    is: "",
    rows: "M5",
  },
  {
    name: "the ledger's nonce is not compared",
    file: "src/requests/journal/ledger.ts",
    was: "return nonce !== undefined && claim.nonce !== nonce;",
    is: "return false;",
    rows: "R15",
  },
  {
    name: "a claim is sent without being durable",
    file: "src/requests/perform/send.ts",
    was: "if (forgettable !== undefined) return returnUnsent(claimed, forgettable, by);",
    is: "",
    rows: "R14",
  },
  {
    name: "the claim compares no revision",
    file: "src/requests/journal/scripts.ts",
    was: "if is[1] .. ' ' .. nonce ~= ARGV[2] then return {'changed'} end",
    is: "",
    rows: "M6",
  },
  {
    name: "the claim takes no lock",
    file: "src/requests/journal/scripts.ts",
    was: "if holder and holder ~= ARGV[1] then return {'locked', holder} end",
    is: "",
    rows: "M2",
  },
  {
    name: "the claim doesn't look for a freeze",
    file: "src/requests/journal/scripts.ts",
    was: "if freeze then return {'frozen', freeze} end",
    is: "",
    rows: "M3",
  },
  {
    name: "the gate doesn't count the votes again",
    file: "src/requests/perform/gate.ts",
    was: "if (unapproved) return unapproved;",
    is: "",
    rows: "X2,X14",
  },
  {
    name: "the gate doesn't compare the target with what was seen",
    file: "src/requests/perform/gate.ts",
    was: 'if (changed) return { is: "closed", why: changed, hint: "Check',
    is: 'if (changed === "never") return { is: "closed", why: changed, hint: "Check',
    rows: "A19,I4",
  },
  {
    name: "a lower version of the policy replaces the higher one",
    file: "src/start/adopt-policy.ts",
    was: 'return current === 0 ? "replaces" : "refused";',
    is: 'return "replaces";',
    rows: "P20",
  },
  {
    name: "a new name is not judged",
    file: "src/policy/refusal.ts",
    was: 'return typeof name === "string" && name.trim() !== "" ? name.trim() : undefined;',
    is: "return void name;",
    rows: "X15",
  },
  {
    name: "the VMs inside a project are not judged",
    file: "src/policy/refusal.ts",
    was: 'return { ...project, kind: "vm", name, projectName: project.name, because };',
    is: "return { ...project, because: because || name };",
    rows: "X15",
  },
  {
    name: "a mention runs what it names",
    file: "src/slack/conversation/run.ts",
    was: 'if (interaction.kind === "mention" && command.kind === "read" && command.class !== "read")',
    is: 'if (command.name === "")',
    rows: "X16",
  },
  {
    name: "a lost post is not looked up",
    file: "src/slack/deliver/post-once.ts",
    was: "const found = await lookUp(subject, key, place);",
    is: 'const found = await lookUp({ ...subject, id: "nobody" }, key, place);',
    rows: "S8",
  },
  {
    name: "a request joins a shared card though its own is posted",
    file: "src/requests/journal/shared-cards.ts",
    was: "if not r[1] or (r[2] or '') ~= '' or r[3] then return '' end",
    is: "if not r[1] then return '' end",
    rows: "M8",
  },
  {
    name: "no time of quiet",
    file: "src/requests/perform/poll.ts",
    was: "const quietAt = leftBy + timing.quiesceMs;",
    is: "const quietAt = leftBy;",
    rows: "A6,M4",
  },
  {
    name: "a call begins however late it is",
    file: "src/requests/perform/send.ts",
    was: "const isLate = elapsedMs() > longestMs || at - claim.at > longestMs;",
    is: "const isLate = false && at;",
    rows: "M7",
  },
  {
    name: "what wasn't applied is never looked at again",
    file: "src/requests/perform/poll.ts",
    was: "await by.store.lates.later(request.record.id, lateLookMs(by.policy.timing));",
    is: "void lateLookMs(by.policy.timing);",
    rows: "A7b",
  },
  {
    name: "one node's address is taken for the primary's",
    file: "src/redis/primary.ts",
    was: 'if (mode === "single" && only)',
    is: "if (only)",
    rows: "R23",
  },
  {
    name: "a slow Redis ends the handling of what it took",
    file: "src/slack/receive/deliveries.ts",
    was: "await patiently(() => work(reply));",
    is: "await work(reply);",
    rows: "R25",
  },
  {
    name: "what was acked is left to a dead gateway",
    file: "src/slack/receive/intake.ts",
    was: 'if (is === "gone") continue;',
    is: 'if (is !== "dropped") continue;',
    rows: "P1b,P21",
  },
  {
    name: "an accept whose answer was lost isn't undone",
    file: "src/slack/receive/intake.ts",
    was: "      owe(id, stamp);\n",
    is: "",
    rows: "R8d",
  },
  {
    name: "what comes twice is accepted twice",
    file: "src/slack/receive/intake.ts",
    was: "if redis.call('EXISTS', KEYS[1]) == 1 then return 'seen' end",
    is: "",
    rows: "S1",
  },
];
