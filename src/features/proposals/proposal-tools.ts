import type { Policy } from "../../config/policy-file.ts";
import * as z from "zod";
import type { AgentTool } from "../../api/api-context.ts";
import type { Caller } from "../../api/callers.ts";
import { outputSchema } from "../../api/schemas.ts";
import { UserError } from "../../errors.ts";
import { mayRun } from "../../core/permit/permit.ts";
import { mayPropose } from "../../core/permit/service-rights.ts";
import { type Command, isChange, usageOf } from "../../registry/define.ts";
import type { Input } from "../../registry/invocation.ts";
import { proposed, stateShape } from "./describe-proposals.ts";
import { type ProposalState, propose, stateOf } from "./propose.ts";

const proposedByTool = proposed.extend({
  key: z.string().min(1).max(200).optional().describe("a call with the same key can be repeated"),
});
const named = z.strictObject({ id: z.string().min(1).max(60) });

function parsed<T>(schema: z.ZodType<T>, input: Input): T {
  const read = schema.safeParse(input);
  if (read.success) return read.data;
  throw new UserError(`That can't be read: ${z.prettifyError(read.error)}`);
}

const toolResult = (state: ProposalState) => ({ text: `${state.id}: ${state.state}`, data: state });

/** Usages of the commands that this caller may propose. */
function usagesFor(
  caller: Caller | undefined,
  {
    commands,
    policy,
    ourTeamId,
  }: { commands: readonly Command[]; policy: Policy; ourTeamId: string },
): readonly string[] {
  const isOffered = (command: (typeof commands)[number]) => {
    if (!isChange(command) || !caller) return isChange(command);
    if ("person" in caller)
      return mayRun({ person: caller.person, command }, { policy, ourTeamId });
    return mayPropose(caller.rule, command);
  };
  return commands.filter(isOffered).map((command) => usageOf(command).slice(1));
}

/** Tools for agents: propose a change, and ask where it stands. */
export const proposalTools: readonly AgentTool[] = [
  {
    name: "propose",
    describe: (caller, gateway) => ({
      description: `Propose a change. It runs only if a person with the right presses Run in Gatehouse's own message in Slack; get_request tells what became of it. A proposal is for one target, also where a command takes several (<vm…>). Commands: ${usagesFor(caller, gateway).join("; ") || "none"}.`,
      inputSchema: outputSchema(proposedByTool),
      outputSchema: outputSchema(stateShape),
      isReadOnly: false,
    }),
    call: async (caller, input, behind, { key }) =>
      toolResult(await propose(caller, { key, ...parsed(proposedByTool, input) }, behind)),
  },
  {
    name: "get_request",
    describe: () => ({
      description: "Show where a proposal, or the request that was made of it, stands.",
      inputSchema: outputSchema(named),
      outputSchema: outputSchema(stateShape),
      isReadOnly: true,
    }),
    call: async (caller, input, behind) =>
      toolResult(await stateOf(caller, parsed(named, input).id, behind)),
  },
];
