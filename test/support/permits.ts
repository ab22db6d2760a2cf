import { emptyPolicy, type Policy } from "../../src/config/policy-file.ts";
import {
  type Asking,
  type Basis,
  type Permit,
  type Rules,
  mayAsk,
  permit,
} from "../../src/core/permit/permit.ts";
import type { VoteNeed } from "../../src/core/permit/approval-rule.ts";
import type { ChangeCommand, Command, Target } from "../../src/registry/define.ts";
import type { Input, Person } from "../../src/registry/invocation.ts";

/** Approvals as a rule of gatehouse.yml would ask for them. */
export interface WantedApprovals {
  required: number;
  votes?: readonly VoteNeed[];
  expiresMs: number;
}

interface Wanted<C extends Command> {
  command: C;
  person: Person;
  target: Target;
  input: Input;
  channelId: string;
  basis?: Basis;
  approvals?: WantedApprovals | undefined;
}

const everyone = ["*"];

/** The rules of a workspace in which everybody may do everything, once these approvals are given by those in `policy`. */
function rulesFor(
  person: Person,
  { access }: Pick<Policy, "access">,
  { required, votes, expiresMs }: WantedApprovals = { required: 0, expiresMs: 0 },
): Rules {
  const policy: Policy = {
    ...emptyPolicy(),
    access: {
      ...access,
      view: everyone,
      operate: everyone,
      administer: everyone,
      breakGlass: everyone,
    },
    approvals: [{ operations: everyone, required, expiresMs, ...(votes ? { votes } : {}) }],
  };
  return { policy, ourTeamId: person.teamId };
}

/** For tests of what comes after policy. */
export function permitFor<C extends ChangeCommand>(
  { target, approvals, ...question }: Wanted<C>,
  policy: Pick<Policy, "access"> = emptyPolicy(),
): Permit<C> {
  const { asking } = mayAsk(question, rulesFor(question.person, policy, approvals));
  const given = asking && permit(asking, { targets: [target], vms: [] }).permit;
  if (!given) throw new Error(`policy refuses ${question.command.name}`);
  return given;
}

/** For tests that look names up. */
export function askingFor<C extends Command>(command: C, person: Person): Asking<C> {
  const question = { command, person, channelId: "C01OPS" };
  const { asking } = mayAsk(question, rulesFor(person, emptyPolicy()));
  if (!asking) throw new Error(`policy refuses ${command.name}`);
  return asking;
}
