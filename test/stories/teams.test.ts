import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { commands } from "../../src/features/index.ts";
import { argumentsOf, targetArgument, dottedName } from "../../src/registry/define.ts";
import { handlersInCode } from "./handlers-in-code.ts";
import {
  type Answered,
  foreignLetters,
  madeUp,
  startTwoTeams,
  type TwoTeams,
} from "./two-teams.ts";

/**
 * Nothing of another team shows, and nothing of it changes: whatever Olivia types, presses, submits, or looks for, with the
 * names and IDs of the other team, is answered as for what doesn't exist, and takes the same calls to the service. The
 * commands, actions, and forms are those that the code knows: a new one is tried too.
 */
describe("a person of one team, with names and IDs of another", () => {
  let teams: TwoTeams;
  let before: string;
  const handlers = handlersInCode();
  const actions = handlers.filter((one) => !one.startsWith("form "));
  const forms = handlers.filter((one) => one.startsWith("form ")).map((one) => one.slice(5));

  beforeAll(async () => {
    teams = await startTwoTeams();
    before = await teams.standing();
  }, 60_000);
  afterAll(() => teams[Symbol.asyncDispose]());

  /** The answer to a word of theirs, and to one that nothing is called. */
  async function bothAnswers(
    secret: string,
    act: (word: string) => Promise<string | void>,
  ): Promise<{ foreign: Answered; unknown: Answered }> {
    const made = madeUp(secret);
    return {
      foreign: without(secret, await teams.answerTo(() => act(secret))),
      unknown: without(made, await teams.answerTo(() => act(made))),
    };
  }

  async function expectAlike(
    what: string,
    secret: string,
    act: (word: string) => Promise<string | void>,
  ): Promise<void> {
    const { foreign, unknown } = await bothAnswers(secret, act);
    expect(foreign.text, what).not.toMatch(new RegExp(foreignLetters, "i"));
    expect(foreign.text, what).toBe(unknown.text);
    expect(foreign.calls, what).toEqual(unknown.calls);
  }

  it.each(commands.map((command) => [command.name, command] as const))(
    "gets nothing of /%s",
    async (_name, command) => {
      const { vm, vmId, project, projectId, words, draft, snapshot } = teams.theirs;
      const [, , ...tokens] = command.example.split(" ");
      const places = tokens.flatMap((token, at) => (token.startsWith("--") ? [] : [at]));
      const [first = 0, second] = places;
      const olivia = teams.world.slack.person("olivia");
      const typed = (at: number, word: string) =>
        [command.name, ...tokens.slice(0, at), word, ...tokens.slice(at + 1)].join(" ");
      const tries = [
        ...[
          vm,
          vmId,
          project,
          projectId,
          words["project/VM"] ?? "",
          words["glob"] ?? "",
          draft,
        ].map((secret) => [first, secret] as const),
        ...(second === undefined ? [] : [vm, snapshot].map((secret) => [second, secret] as const)),
      ];
      for (const [at, secret] of tries)
        await expectAlike(typed(at, secret), secret, async (word) => {
          await olivia.types("ops", `/${typed(at, word)}`);
        });
      if (targetArgument(command) === undefined) return;
      await expectAlike(`${command.name} in a message`, vmId, async (word) => {
        await olivia.types("D0OLIVIA", typed(first, word));
      });
      await expectAlike(`${command.name} in a mention`, vmId, async (word) => {
        const bot = teams.world.slack.app.botUserId;
        await olivia.types("ops", `<@${bot}> ${typed(first, word)}`);
      });
    },
  );

  it.each(commands.map((command) => [command.name, command] as const))(
    "gets nothing of a button or a form of /%s",
    async (_name, command) => {
      const { vmId, projectId } = teams.theirs;
      const isOfProject = targetArgument(command)?.target === "project";
      const secret = isOfProject ? projectId : vmId;
      const named = dottedName(command);
      const inputs = (word: string) =>
        Object.fromEntries(
          argumentsOf(command).map(({ key, isList }) => [key, isList ? [word] : word]),
        );
      await expectAlike(`run:${named}`, secret, (word) =>
        teams.press(`run:${named}`, inputs(word)),
      );
      await expectAlike(`share of ${named}`, secret, (word) =>
        teams.press("share", { command: named, input: inputs(word) }),
      );
      for (const callback of ["dialog", "pick-target"])
        await expectAlike(`form ${callback} of ${named}`, secret, (word) =>
          teams.submit(
            callback,
            {
              command: command.name,
              targetId: word,
              channelId: "C01OPS",
              values: callback === "dialog" ? inputs(word) : {},
            },
            filledIn(word),
          ),
        );
    },
  );

  it("gets nothing of any other form, whatever it names", async () => {
    const { vmId, draft, done, rollout } = teams.theirs;
    for (const callback of forms)
      for (const secret of [vmId, draft, done, rollout])
        await expectAlike(`form ${callback} on ${secret}`, secret, (word) => {
          const origin = { kind: "request", request: word, press: "undo", undoes: word };
          const metadata = { request: word, roll: word, origin, happened: true };
          const dialog = { command: "vm restore", targetId: word, channelId: "C01OPS" };
          return teams.submit(callback, { ...dialog, ...metadata }, filledIn(word));
        });
  });

  it("gets nothing of any other button, whatever it names", async () => {
    const { vmId, draft, done, rollout } = teams.theirs;
    for (const action of actions)
      for (const secret of [vmId, draft, done, rollout]) {
        const value = (word: string) => ({
          request: word,
          roll: word,
          vm: word,
          vms: [word],
          project: word,
          snapshot: word,
          line: word,
          next: word,
          once: "x",
          for: "U0OLIVIA",
          until: Date.now() + 1e7,
          command: "vm.show",
          input: { vm: word },
          digest: "x",
          since: 0,
        });
        await expectAlike(`${action} ${secret}`, secret, (word) =>
          teams.press(action, value(word)),
        );
      }
  });

  it("finds nothing of it in any list to choose from", async () => {
    const { vm, vmId, projectId, project, snapshot } = teams.theirs;
    for (const action of ["pick:vm", "pick:project", "arg:snapshot"])
      for (const secret of [vm, vmId, project, projectId, snapshot])
        for (const typed of [(word: string) => word, (word: string) => word.slice(0, 3), () => ""])
          await expectAlike(`${action} ${secret}`, secret, (word) =>
            teams.suggest(action, typed(word), {
              targetId: word,
              command: "vm restore",
              channelId: "C01OPS",
            }),
          );
  });

  it("sees nothing of it on the Home tab, and none of it named in a message", async () => {
    const olivia = teams.world.slack.person("olivia");
    const home = await teams.answerTo(async () => {
      await olivia.opensHome();
      await teams.world.slack.until(() => teams.world.slack.calls("views.publish").length > 0);
    });
    expect(home.text).toContain("views.publish");
    expect(home.text).not.toMatch(/xqu/i);
    const { ts = "" } = await olivia.types("ops", "what of xqudb and db-1 and vm-xqudb?");
    const isSaid = () => /named in that message/.test(JSON.stringify(teams.world.slack.calls()));
    const named = await teams.answerTo(async () => {
      await olivia.picksMessageShortcut("show-vms", ts);
      await teams.world.slack.until(isSaid);
    });
    expect(named.text).toContain("One VM is named in that message");
    expect(named.text).not.toMatch(/xqu/i);
  });

  it("has changed nothing of it, and none of this was a bug", async () => {
    expect(await teams.standing()).toBe(before);
    expect(teams.tally.result().crashes).toEqual([]);
  });
});

/** What every form could hold. */
const filledIn = (word: string) => ({
  confirm: word,
  reason: "because of this",
  vm: word,
  project: word,
  "arg:snapshot": word,
  "arg:name": word,
});

/** Without the word itself, and what is another each time: times, new IDs, and addresses. */
function without(word: string, { text, calls }: Answered): Answered {
  const plain = (one: string) =>
    one
      .replaceAll(
        new RegExp(`${RegExp.escape(word)}|${RegExp.escape(word.slice(0, 3))}`, "gi"),
        "☐",
      )
      .replaceAll(
        /"(trigger_id|view_id|hash|ts|thread_ts|message_ts|response_url|user_id|client_msg_id)":"[^"]*"/g,
        "",
      )
      .replaceAll(/<!date\^[^>]*>|\b\d+(\.\d+)? ?(ms|s|min|h|d)\b( \d+ (s|min|h))?/g, "⏱")
      // Told once it is older than five seconds
      .replaceAll(" Gatehouse read the list ⏱ ago.", "")
      // Jobs come and go
      .replaceAll(/\d+ jobs? waiting/g, "N jobs waiting")
      .replaceAll(/\br-[a-z0-9]{10}\b|\broll-[a-z0-9]{8}\b/g, "#")
      .replaceAll(/https?:\/\/[^\s"\\]+/g, "⌂");
  return { text: plain(text), calls: calls.map(plain) };
}
