import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Policy } from "../../../src/config/policy-file.ts";
import { covers } from "../../../src/core/permit/approval-rule.ts";
import {
  type Asking,
  type Basis,
  type Permit,
  type Question,
  askAndPermit,
  checkAsking,
  checkPermit,
  forChange,
  mayAsk,
  permit,
  permitAsRequest,
  permitEach,
  permitInRollout,
  permitSafetySnapshot,
  raiseForRestore,
  serviceMayAsk,
  specify,
  refusalByLists,
} from "../../../src/core/permit/permit.ts";
import { console, restore, snapshot } from "../../support/commands.ts";
import { restart } from "../../../src/commands/vm/restart.ts";
import { update } from "../../../src/commands/project/update.ts";
import type { ChangeCommand, Command } from "../../../src/registry/define.ts";
import { command, ourTeamId, person, policyOf, project, usual, vm } from "./sample.ts";

const rulesOf = (policy: Policy = usual) => ({ policy, ourTeamId });
const ola = person("U0OLA");
/** A person who may only approve. */
const lead = person("U0LEAD", { groups: ["S02LEADS"] });

function asking<C extends Command>(
  question: Pick<Question<C>, "command"> & Partial<Question<C>>,
  policy = usual,
): Asking<C> {
  const answer = mayAsk({ person: ola, channelId: "C01", ...question }, rulesOf(policy));
  if (!answer.asking) throw new Error(answer.refused.text);
  return answer.asking;
}

function permitOf(
  question: Pick<Question<ChangeCommand>, "command"> & Partial<Question<ChangeCommand>>,
  target = vm("db-1"),
  policy = usual,
): Permit {
  const answer = permit(asking(question, policy), { targets: [target], vms: [] });
  if (!answer.permit) throw new Error(answer.refused.text);
  return answer.permit;
}

const prototypeOf = (real: Permit) => Object.getPrototypeOf(real) as object;

describe("a permit", () => {
  it("is made by its module alone: nothing that looks like one is taken, by the compiler or when it runs", () => {
    const real = permitOf({ command: restart });
    const { person: who, command: what, targets, input, approvals } = real;
    const looksLike = { person: who, command: what, targets, input, approvals };
    // @ts-expect-error: an object is no permit
    expect(() => checkPermit(looksLike)).toThrow("only a permit");
    const fewer = { approvals: { ...approvals, required: 0 } };
    const copy: Permit = Object.assign(Object.create(prototypeOf(real)) as object, real, fewer);
    expect(() => checkPermit(copy)).toThrow("only a permit");
    // @ts-expect-error: an object is no asking either
    expect(() => checkAsking({ person: who, command: what })).toThrow("only for someone who may");
    const read = permit(asking({ command: console }), { targets: [vm("db-1")] }).permit;
    // @ts-expect-error: a permit is none for a change when it is one for a read
    const change: Permit | undefined = read;
    expect(change?.command.kind).toBe("read");
    expect(() => checkPermit(real)).not.toThrow();
  });

  it("carries what was decided: who, what, on what, and who must approve", () => {
    const given = permitOf({ command: restore, input: { snapshot: "nightly" } });
    expect(given).toMatchObject({
      person: { id: "U0OLA" },
      command: { name: "vm restore" },
      channelId: "C01",
      input: { snapshot: "nightly" },
      target: { name: "db-1" },
      isBreakGlass: false,
      approvals: {
        required: 1,
        votes: [{ from: ["S02LEADS", "U0OLA"], required: 1 }],
        index: "default",
      },
    });
  });

  it("is for one target where a request is made of it", () => {
    const many = permit(asking({ command: restart }), { targets: [vm("a"), vm("b")] }).permit;
    expect(many?.targets).toHaveLength(2);
    expect(() => many?.target).toThrow("for no single request");
  });

  it("isn't given where a target is refused, though they may ask", () => {
    const answer = permit(asking({ command: command("vm stop") }), { targets: [vm("vault-1")] });
    expect(answer.refused?.rule).toBe("protect vault-*");
    const each = permitEach(asking({ command: command("vm stop") }), [vm("a"), vm("vault-1")]);
    expect(each.permits.map(({ target }) => target.name)).toEqual(["a"]);
    expect(each.refused.map(({ target }) => target.name)).toEqual(["vault-1"]);
  });

  it("is refused before any name is known to someone without the right, in the words of the target where it is known", () => {
    const policy = policyOf(`
access: { view: ["*"] }
teams:
  payments: { projects: [payments], view: [U0VERA], operate: [U0OLA] }
`);
    const question = { person: person("U0VERA"), command: restart, channelId: "C01" };
    expect(mayAsk(question, rulesOf(policy)).refused?.rule).toBe("operate");
    const known = askAndPermit(question, { targets: [vm("web-1", "payments")] }, rulesOf(policy));
    expect(known.refused?.rule).toBe("teams.payments.operate");
  });
});

describe("an undo", () => {
  const saved = { targetId: "vm-db-1", snapshotId: "snap-7" };
  const undo: Basis = { kind: "undo", saved };
  const asked = { person: lead, command: restore, channelId: "C01", basis: undo };

  it("may be asked for by an approver, for what was saved of that target and nothing else", () => {
    const rules = rulesOf();
    const ask = (snapshotId: string) =>
      mayAsk({ ...asked, input: { snapshot: snapshotId } }, rules);
    expect(ask("snap-8").refused?.rule).toBe("access.operate");
    const { asking: may } = ask("snap-7");
    if (!may) throw new Error("refused");
    expect(permit(may, { targets: [vm("db-1")] }).permit).toBeDefined();
    expect(permit(may, { targets: [vm("db-2")] }).refused?.rule).toBe("access.operate");
    const other = { targets: [vm("db-1")], input: { snapshot: "snap-8" } };
    expect(permit(may, other).refused?.rule).toBe("access.operate");
  });

  it("covers the snapshot that is taken right before it, of the same target alone", () => {
    const before = { target: vm("db-1"), input: { snapshot: "snap-7" }, basis: undo };
    const question = {
      person: lead,
      command: snapshot,
      channelId: "C01",
      basis: { kind: "safety", before } as const,
    };
    const on = (name: string) => askAndPermit(question, { targets: [vm(name)] }, rulesOf());
    expect(on("db-1").permit?.approvals.required).toBe(0);
    expect(on("db-2").refused?.rule).toBe("access.operate");
    const usually = { ...before, basis: { kind: "usual" } as const };
    const plain = { ...question, basis: { kind: "safety", before: usually } as const };
    expect(askAndPermit(plain, { targets: [vm("db-1")] }, rulesOf()).refused).toBeDefined();
  });
});

describe("break-glass", () => {
  it("takes the right of an emergency and skips approvals, for what disrupts or destroys", () => {
    const glass = person("U0GLASS");
    const basis = { kind: "break-glass" } as const;
    const question = { person: glass, command: restore, channelId: "C01", basis };
    const { permit: given } = askAndPermit(question, { targets: [vm("db-1")] }, rulesOf());
    expect(given).toMatchObject({ isBreakGlass: true, approvals: { required: 0, votes: [] } });
    expect(mayAsk({ ...question, person: ola }, rulesOf()).refused?.rule).toBe("access.breakGlass");
    expect(mayAsk({ ...question, command: snapshot }, rulesOf()).refused?.rule).toBe(
      "access.breakGlass",
    );
  });
});

describe("what is added to a permit afterwards", () => {
  it("makes it stricter or leaves it as it is, whatever is read", () => {
    const restoring = fc.record({
      snapshot: fc.option(
        fc.record({
          at: fc.integer({ min: 0, max: 2_000 }),
          measurement: fc.option(fc.constantFrom("a", "b"), { nil: undefined }),
        }),
        { nil: undefined },
      ),
      measurementNow: fc.option(fc.constantFrom("a", "b"), { nil: undefined }),
      now: fc.integer({ min: 0, max: 10_000 }),
    });
    const rules = [
      `approvals: [{ operations: ["vm.restore"], required: 2 }]`,
      `approvals: [{ operations: ["vm.restore"], required: 0 }]`,
      `approvals: [{ operations: ["*"], votes: [{ from: [U0A] }, { from: [S0B], required: 2 }] }]`,
      `attestation: { maxSnapshotAge: 1s }`,
    ].map((section) =>
      policyOf(`{ access: { operate: [U0OLA], approve: [U0A, U0B] }, ${section} }`),
    );
    fc.assert(
      fc.property(fc.constantFrom(...rules), fc.boolean(), restoring, (policy, isNamed, facts) => {
        const input = isNamed ? { snapshot: "s" } : {};
        const before = permitOf({ command: restore, input }, vm("db-1"), policy);
        const after = raiseForRestore(before, facts);
        expect(covers(after.approvals.votes, before.approvals.votes)).toBe(true);
        expect(after.approvals.required).toBeGreaterThanOrEqual(before.approvals.required);
        expect(after.approvals.raised !== undefined).toBe(
          after.approvals.required > before.approvals.required,
        );
      }),
    );
  });

  it("needs one more approval for a snapshot whose measurement can't be compared with that of now", () => {
    const before = permitOf({ command: restore, input: { snapshot: "s" } }, vm("db-1"));
    const raisedFor = (measurement: string | undefined, measurementNow: string | undefined) =>
      raiseForRestore(before, { snapshot: { at: 0, measurement }, measurementNow, now: 1 })
        .approvals.raised;
    expect(raisedFor("a", "a")).toBeUndefined();
    expect(raisedFor(undefined, undefined)).toBeUndefined();
    expect(raisedFor("a", "b")).toBe("the snapshot was taken under another measurement");
    expect(raisedFor("a", undefined)).toBe("the VM's measurement now isn't known");
    expect(raisedFor(undefined, "a")).toBe("the snapshot's measurement isn't known");
  });

  it("may name a snapshot by its ID, and never a new name that no rule looked at", () => {
    const restoring = permitOf({ command: restore, input: { snapshot: "nightly" } });
    const exact = specify(restoring, { snapshot: "snap-7" });
    expect(exact).toMatchObject({ input: { snapshot: "snap-7" }, approvals: { required: 1 } });
    const resized = permitOf({ command: update, input: { cpu: 4 } }, project("shop"));
    expect(() => specify(resized, { name: "vault" })).toThrow("a permit of its own");
  });
});

describe("what changes no target, such as a cancellation", () => {
  const stopVm = { command: command("vm stop"), changesNothing: true };

  it("needs the right over its targets, and is no matter of what is protected", () => {
    const stop = asking(stopVm);
    expect(refusalByLists(stop, [vm("vault-1")])).toBeUndefined();
    const teams = policyOf(`
access: { operate: [U0OLA] }
teams: { payments: { projects: [payments], operate: [U0PAY] } }
`);
    const theirs = asking(stopVm, teams);
    expect(refusalByLists(theirs, [vm("web-1", "payments")])?.rule).toBe("teams.payments.operate");
  });

  it("is no matter of the channels for changes, and gives nobody a permit for one", () => {
    const elsewhere = policyOf("access: { operate: [U0OLA] }\nchannels: [C02OTHER]");
    expect(() => asking({ command: command("vm stop") }, elsewhere)).toThrow(/in this channel/);
    const stop = asking(stopVm, elsewhere);
    expect(refusalByLists(stop, [vm("web-1")])).toBeUndefined();
    expect(() => permit(stop, { targets: [vm("web-1")] })).toThrow("needs no permit");
    expect(() => permit(forChange(stop), { targets: [vm("web-1")] })).toThrow("needs no permit");
    expect(() => refusalByLists(asking({ command: command("vm stop") }), [])).toThrow();
  });
});

describe("a permit that was given before", () => {
  const rollout = {
    state: "running",
    record: { command: "vm restart", requester: ola, channelId: "C01" },
    targets: [vm("a"), vm("b")],
  };

  it("covers the targets of a rollout that somebody confirmed, with its command alone", () => {
    const about = { command: restart, target: vm("a"), input: { vms: ["vm-a"] } };
    const given = permitInRollout(rollout, about, rulesOf());
    expect(given).toMatchObject({
      person: { id: "U0OLA" },
      target: { name: "a" },
      channelId: "C01",
    });
    const planned = { ...rollout, state: "planned" };
    for (const [of, what] of [
      [planned, about],
      [rollout, { ...about, target: vm("c") }],
      [rollout, { ...about, command: restore }],
    ] as const)
      expect(() => permitInRollout(of, what, rulesOf())).toThrow("nobody confirmed");
  });

  it("covers the snapshot that is taken before data is replaced, and no other command", () => {
    const request = {
      id: "r-1",
      target: vm("db-1"),
      input: { snapshot: "s" },
      requester: ola,
      channelId: "C01",
    };
    const given = permitSafetySnapshot(request, snapshot, rulesOf());
    expect(given).toMatchObject({ input: { name: "before-r-1" }, isBreakGlass: false });
    const next = permitSafetySnapshot(request, snapshot, rulesOf(), 2);
    expect(next.input["name"]).toBe("before-r-1-2");
    const emergency = permitSafetySnapshot({ ...request, breakGlass: true }, snapshot, rulesOf());
    expect(emergency.isBreakGlass).toBe(true);
    expect(() => permitSafetySnapshot(request, restore, rulesOf())).toThrow("takes no snapshot");
  });

  it("covers the request that stands for a console, as the console's own rule says", () => {
    const policy = policyOf(`
access: { operate: [U0OLA], approve: [U0A] }
approvals: [{ operations: ["vm.console"], required: 1 }]
`);
    const answer = permit(asking({ command: console }, policy), { targets: [vm("db-1")] });
    const request = answer.permit && permitAsRequest(answer.permit);
    expect(request).toMatchObject({ command: { kind: "change" }, approvals: { required: 1 } });
    const list = permit(asking({ command: command("vm list") }, policy), { targets: [] });
    expect(list.permit && permitAsRequest(list.permit)).toBeUndefined();
  });
});

describe("an asking", () => {
  it("is none for a change when it is one for a read", () => {
    expect(() => forChange(asking({ command: command("vm list") }))).toThrow("changes no target");
  });

  it("looks names up for what a program may read or propose, and gives it no permit", () => {
    const rule = { propose: [{ operations: ["vm.restart"] }] } as never;
    const program = person("services.deploy", { kind: "bot" });
    const given = serviceMayAsk(program, rule, restart);
    expect(given?.person.id).toBe("services.deploy");
    expect(serviceMayAsk(program, rule, restore)).toBeUndefined();
    expect(serviceMayAsk(program, rule, console)).toBeUndefined();
    // @ts-expect-error: only a person's asking leads to a permit
    expect(() => given && permit(given, { targets: [vm("a")] })).toThrow("only a person");
  });
});
