import * as fc from "fast-check";
import type { SeenMessage } from "../../sandbox/slack/seen.ts";
import { wordsOf } from "../stories/words.ts";
import { policyWith, startWorld, type TestWorld } from "../support/start-world.ts";
import { until } from "../support/until.ts";
import { type Fuzzed, createTally, sampled } from "./fuzzed.ts";

/** What a person asks for, where, and how the world stands then. */
interface Case {
  who: "olivia" | "amir" | "vera" | "ada";
  channel: "ops" | "random" | "gatehouse";
  deed: (typeof deeds)[number];
  vm: string;
  status: "RUNNING" | "STOPPED" | "ERROR";
  /** Whether the case before is asked for once more in place of a new one. */
  isRepeated: boolean;
  isFrozen: boolean;
}

const deeds = ["restart", "stop", "start", "snapshot", "resize", "pin", "create"] as const;
const vms = ["one", "two", "three", "four", "five", "six"].map((name) => `payments/${name}`);

const cases: fc.Arbitrary<Case> = fc.record({
  who: fc.constantFrom("olivia", "olivia", "olivia", "amir", "vera", "ada"),
  channel: fc.constantFrom("ops", "ops", "ops", "ops", "random", "gatehouse"),
  deed: fc.constantFrom(...deeds),
  vm: fc.constantFrom(...vms, "vault/vault-1"),
  status: fc.constantFrom("RUNNING", "RUNNING", "RUNNING", "STOPPED", "ERROR"),
  isRepeated: fc.nat(4).map((n) => n === 0),
  isFrozen: fc.nat(9).map((n) => n === 0),
});

/** Rules under which the same words end in every way. */
const policies = [
  policyWith({ operate: ["S01ONCALL", "U0ADA"] }),
  policyWith(
    { operate: ["S01ONCALL", "S02LEADS"] },
    'approvals: [{ operations: ["vm.stop", "project.create"], required: 1 }, { operations: ["vm.resize"], votes: [{ from: [U0AMIR] }] }]\n',
  ),
  policyWith({ alerts: undefined }, 'approvals: [{ operations: ["vm.*"], required: 1 }]\n'),
  policyWith({}, "limits: { requestsPerMinute: 3, draftsPerPerson: 1 }\n"),
];

/**
 * What `/gatehouse can-i` says is what then happens: the same person types the same words in the
 * same channel right after it, and fills in the form that opens. `cases` are those who ask, spread
 * over several policies.
 */
export async function fuzzCanI({ cases: count, seed }: { cases: number; seed: number }) {
  const tally = createTally();
  const ends = new Map<string, number>();
  const perPolicy = Math.ceil(count / policies.length);
  await Promise.all(
    policies.map(async (policy, n) => {
      await using world = await startWorld({
        policy,
        prepare({ edit }) {
          for (const vm of vms) edit.addVm({ project: "payments", name: vm.split("/")[1] ?? "" });
        },
      });
      let before: Case | undefined;
      for (const drawn of sampled(cases, { cases: perPolicy, seed: seed + n })) {
        const one = drawn.isRepeated && before ? { ...before, isFrozen: false } : drawn;
        before = one;
        tally.count();
        const began = performance.now();
        const { foretold, happened, said } = await tryCase(world, one, drawn.isRepeated);
        if (happened.isDone) tally.accept();
        const end = foretold.isStopped ? "stopped" : foretold.is;
        ends.set(end, (ends.get(end) ?? 0) + 1);
        if (!agrees(foretold, happened))
          tally.wrong(
            `said ${JSON.stringify(foretold)}, and was ${JSON.stringify(happened)}: ${JSON.stringify(one)}: ${said}`,
          );
        tally.took(performance.now() - began);
      }
    }),
  );
  const counts = [...ends].map(([end, times]) => `${end} ${times}`).join(", ");
  return { ...tally.result(`foretold: ${counts}`), ends } satisfies Fuzzed & { ends: unknown };
}

/** What became of the words: no request, one that people must approve, or one that ended. */
interface End {
  is: "none" | "asked" | "ended";
  /** Whether what was asked for was done in the end, once approved where it had to be. */
  isDone: boolean;
}

interface Foretold extends Pick<End, "is"> {
  /** Undefined where nobody can know: the service may refuse anything of a VM in ERROR. */
  isDone: boolean | undefined;
  /** Whether it says that something would refuse it, at the request or right before the send. */
  isStopped: boolean;
  /** Whether it says that nothing would be sent, since all is as wanted. A form may refuse that. */
  isNeedless: boolean;
}

function agrees(foretold: Foretold, happened: End): boolean {
  if (foretold.isStopped) return !happened.isDone;
  if (foretold.isNeedless && happened.is === "none") return true;
  if (foretold.is !== happened.is) return false;
  return foretold.isDone === undefined || foretold.isDone === happened.isDone;
}

async function tryCase(world: TestWorld, one: Case, isRepeated: boolean) {
  const { who, channel, vm, status, isFrozen } = one;
  const person = world[who];
  if (!isRepeated && vm !== "vault/vault-1") world.compute.edit.setStatus({ vm, status });
  if (isFrozen) await says(world, world.ada, "ops", "/gatehouse freeze for a test");
  const words = wordsFor(one);
  const said = await says(world, person, channel, `/gatehouse can-i ${words}`);
  const before = new Set(await requestsOf(world, person.id));
  await person.types(channel, `/${words}`);
  await world.settled();
  const onTop = () => person.sees().modals.at(-1);
  await until(() => !/Loading/.test(JSON.stringify(onTop()?.blocks ?? [])));
  const form = onTop();
  if (form?.submit === "") await person.closes({ all: true });
  else if (form) {
    const isTyped = JSON.stringify(form.blocks).includes("to confirm");
    const name = words.startsWith("project") ? "new-one" : (vm.split("/")[1] ?? "");
    const { errors } = await person.submits({
      ...(isTyped ? { confirm: name } : {}),
      ...(JSON.stringify(form.blocks).includes('"reason"') ? { reason: "It is tried." } : {}),
    });
    if (errors) await person.closes({ all: true });
    await world.settled();
    await person.closes({ all: true }).catch(() => undefined);
  }
  const [made] = (await requestsOf(world, person.id)).filter((id) => !before.has(id));
  const happened =
    made === undefined ? ({ is: "none", isDone: false } as const) : await endOf(world, made);
  if (isFrozen) await says(world, world.ada, "ops", "/gatehouse thaw");
  return { foretold: foretoldBy(said), happened, said };
}

function wordsFor({ deed, vm }: Case): string {
  switch (deed) {
    case "snapshot":
      return `vm snapshot ${vm} nightly`;
    case "resize":
      return `vm resize ${vm} --cpu 4 --memory 8`;
    case "pin":
      return `gatehouse pins propose ${vm} tried`;
    case "create":
      return "project create --name new-one --type CONTAINER --region eu-west-1";
    default:
      return `vm ${deed} ${vm}`;
  }
}

/** Has a waiting request approved by somebody else, and waits for its end. */
async function endOf(world: TestWorld, id: string): Promise<End> {
  const made = await world.store.get(id);
  const is = made?.state === "draft" ? "asked" : "ended";
  const card = made?.delivered.card;
  if (made?.state === "draft" && card) {
    const approver = made.record.requester.id === world.amir.id ? world.ada : world.amir;
    await approver.presses("Approve", { in: card.ts });
    await world.settled();
  }
  return { is, isDone: (await world.store.get(id))?.state === "done" };
}

function foretoldBy(said: string): Foretold {
  const isStopped = /🛑|are frozen by/.test(said);
  const isDone = /(is|has been) in ERROR/.test(said) ? undefined : true;
  const isNeedless = /already as wanted/.test(said);
  const may = { isDone, isStopped, isNeedless };
  if (said.startsWith("Yes, you can request")) return { is: "asked", ...may };
  if (said.startsWith("Yes, you can run")) return { is: "ended", ...may };
  return { is: "none", isDone: false, isStopped: false, isNeedless: false };
}

const requestsOf = (world: TestWorld, requesterId: string) =>
  world.store.recentIds({ requesterId }, 100);

/** Types words, and resolves with what only this person reads then, once everything is settled. */
async function says(
  world: TestWorld,
  person: TestWorld["olivia"],
  channel: string,
  text: string,
): Promise<string> {
  const read = (): readonly SeenMessage[] => person.seesChannel(channel).messages;
  const before = read().length;
  await person.types(channel, text);
  const [answer] = await until(() => {
    const news = read()
      .slice(before)
      .filter((one) => one.ephemeral || channel === "gatehouse");
    return news.length > 0 ? news : undefined;
  });
  await world.settled();
  return answer ? wordsOf(answer) : "";
}
