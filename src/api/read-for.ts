import type { Policy } from "../config/policy-file.ts";
import { plainTextOf } from "../messages/plain-text.ts";
import type { Log } from "../log/log.ts";
import { mayRun, serviceMayAsk } from "../core/permit/permit.ts";
import type { Command, ReadCommand } from "../registry/define.ts";
import type { Input, Person } from "../registry/invocation.ts";
import { checkInput } from "../registry/parse.ts";
import { PickOne } from "../core/submit/resolve-targets.ts";
import { answerOf, jsonAnswerOf } from "../talk/answer.ts";
import { authorize } from "../talk/authorize.ts";
import { errorReply } from "../slack/error-reply.ts";
import { isGlob } from "../text/glob.ts";
import type { Behind } from "./api-context.ts";
import { type Caller, callerName, seenFrom } from "./callers.ts";
import { programArguments } from "./schemas.ts";
import { ApiProblem } from "./server.ts";

/**
 * The plain reads that this caller may run. Other reads change Gatehouse, or are only for the
 * person who asks. A service may run those that have JSON. Without a caller, all plain reads.
 */
export function readsOf(
  caller: Caller | undefined,
  {
    commands,
    policy,
    ourTeamId,
  }: { commands: readonly Command[]; policy: Policy; ourTeamId: string },
): readonly ReadCommand[] {
  return commands.filter((command): command is ReadCommand => {
    if (command.kind !== "read" || command.class !== "read" || command.audience === "asker")
      return false;
    if (!caller) return true;
    if ("service" in caller) return command.data !== undefined && caller.rule.view.length > 0;
    return mayRun({ person: caller.person, command }, { policy, ourTeamId });
  });
}

/**
 * Runs a read command for a caller of the API, restricted to what the caller may see. Throws
 * ApiProblem for wrong arguments, and Refused.
 */
export async function readFor(
  caller: Caller,
  command: ReadCommand,
  input: Input,
  { gatewayNow }: Pick<Behind, "gatewayNow">,
) {
  const seen = seenFrom(caller, gatewayNow());
  const gateway = { ...seen, inventory: seen.inventory.forPrograms() };
  const person = asPerson(caller);
  const asking =
    "person" in caller
      ? await authorize({ command, input, person, channelId: "" }, gateway)
      : serviceMayAsk(person, caller.rule, command);
  if (!asking) throw new ApiProblem(403, `${person.id} can't read /${command.name}.`);
  const known = programArguments(command).map(({ key }) => key);
  const unknown = Object.keys(input).find((key) => !known.includes(key));
  if (unknown !== undefined)
    throw new ApiProblem(422, "There is no such parameter.", `Known: ${known.join(", ")}.`, {
      field: unknown.slice(0, 60),
    });
  refuseSeveral(command, input);
  const checked = checkInput(command, input);
  if ("problems" in checked) {
    const [{ key, text } = { key: "", text: "That can't be read." }] = checked.problems;
    throw new ApiProblem(422, text, undefined, { field: key });
  }
  const invocation = { command, args: checked.args };
  const act = { interaction: { channelId: "" }, gateway };
  return {
    data: () => jsonAnswerOf(invocation, asking, act),
    text: async () => plainTextOf((await answerOf(invocation, asking, act)).message),
  };
}

/**
 * Where a person may name several in one word, a program names one, because its answer has the
 * shape of one.
 */
function refuseSeveral(command: ReadCommand, input: Input): void {
  for (const { key, isSeveral, target } of programArguments(command)) {
    const words = input[key];
    if (!isSeveral || typeof words !== "string" || !(isGlob(words) || words.includes(",")))
      continue;
    const noun = target === "vm" ? "VM" : "name";
    // It is answered like a name that nothing has; what it would match isn't looked up.
    throw new ApiProblem(404, `${key} takes one ${noun}.`, "Call it once for each.", {
      field: key,
    });
  }
}

/** The caller as a person. A service is never a member, so it has none of the rights of people. */
export const asPerson = (caller: Caller): Person =>
  "person" in caller
    ? caller.person
    : {
        id: callerName(caller),
        teamId: "",
        name: caller.service,
        kind: "bot",
        groups: [],
      };

/** The error in words: a sentence, and a hint. */
export function wordsOf(error: unknown, log: Log): [title: string, detail: string | undefined] {
  if (error instanceof ApiProblem) return [error.message, error.detail];
  if (error instanceof PickOne) {
    const names = error.candidates.slice(0, 10).map(({ kind, name, projectName, projectId }) => {
      return kind === "vm" ? `${projectName ?? projectId}/${name}` : name;
    });
    return [error.message.replace(" Did you mean…", ""), `Did you mean ${names.join(" or ")}?`];
  }
  const [title = "", ...more] = plainTextOf(errorReply(error, log)).split("\n");
  return [title, more.join(" ") || undefined];
}
