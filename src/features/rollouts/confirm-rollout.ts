import { UserError } from "../../errors.ts";
import { md, name } from "../../messages/markdown.ts";
import { type Input, withTarget, withoutRolling } from "../../registry/invocation.ts";
import { parseJson } from "../../text/parse-json.ts";
import {
  type Values,
  argumentErrors,
  fieldError,
  inputOf,
  isTicked,
  textIn,
} from "../../talk/form.ts";
import type { BeforeAck, FormHandler } from "../../talk/gateway-context.ts";
import { say } from "../../slack/error-reply.ts";
import { textAt } from "../../slack/json.ts";
import type { SubmissionResult, ViewSubmission } from "../../slack/receive/interaction.ts";
import { asksNumber } from "./form-of-many.ts";
import { type Planned, authorizePlan, begin, findPlanned, onlyRequester } from "./press-rollout.ts";
import type { Rollouts } from "./rollouts.ts";
import { type Rolling, rollingArgs, rollingOf } from "./rolling.ts";

const firstField = "roll:most";

/** Handles the form of a rollout. Errors are shown before the ack; the rollout begins after it. */
export const confirmRollout = (rollouts: Rollouts): FormHandler => ({
  async beforeAck(act) {
    const { values } = act.interaction;
    try {
      return await checkPlanned(await readPlanned(act, rollouts), act);
    } catch (error) {
      if (error instanceof UserError && firstField in values)
        return fieldError(error, values, firstField);
      throw error;
    }
  },
  async afterAck(act) {
    const { interaction, reply, gateway } = act;
    const planned = await readPlanned(act, rollouts);
    const { rollout, input, options } = planned;
    const { record } = rollout;
    const { limits } = gateway.policy;
    let isStarted = false;
    if (rollout.state === "planned") {
      const permit = await authorizePlan(planned, act);
      // A rollout counts as one request, however many VMs it has, because a person confirmed their
      // number.
      const personId = interaction.userId;
      await gateway.store.countAgainstLimits({ personId, holder: interaction.id, limits });
      const changed = { ...record, input, options };
      isStarted = await begin(permit, rollout, changed, `confirmed: ${record.words}`, rollouts);
    }
    if (!isStarted)
      await reply.privately(
        say(md`You already requested this: ${name(record.id)} is in progress.`),
      );
  },
});

/** The command's arguments and the rollout's options, as filled in. */
type PlannedForm = Planned & { input: Input; options: Rolling };

/** Reads the form and its plan. Throws UserError for everyone except the requester. */
async function readPlanned(
  { interaction, gateway }: BeforeAck<ViewSubmission>,
  rollouts: Rollouts,
): Promise<PlannedForm> {
  const { privateMetadata, values } = interaction;
  const id = textAt(parseJson(privateMetadata), "roll");
  const planned = await findPlanned(id, { interaction, gateway }, rollouts);
  if (!planned) throw new UserError("This dialog is out of date. Please run the command again.");
  onlyRequester(planned, interaction);
  const { command, rollout } = planned;
  const input = withoutRolling(command, inputOf(command, rollout.record.input, values));
  return { ...planned, input, options: optionsIn(values, planned) };
}

/** Errors of the form by field. Throws when the requester may no longer run it. */
async function checkPlanned(
  planned: PlannedForm,
  act: BeforeAck<ViewSubmission>,
): Promise<SubmissionResult | undefined> {
  if (planned.rollout.state !== "planned") return undefined;
  const { command, input } = planned;
  const { values } = act.interaction;
  // Any target works here: this checks everything else.
  const whole = withTarget(command, input, { id: "any" });
  const errors = {
    ...argumentErrors(command, whole, values, firstField),
    ...rollingErrors(planned, values),
  };
  if (Object.keys(errors).length > 0) return { errors };
  await authorizePlan(planned, act);
  return undefined;
}

function optionsIn(values: Values, { rollout, command }: Planned): Rolling {
  const rolling = {
    maxUnavailable: textIn(values, "roll:most"),
    canary: isTicked(values["roll:canary"]),
    stopOnFailure: textIn(values, "roll:failures"),
  };
  return rollingOf(command, rolling, rollout.record.total);
}

function rollingErrors({ rollout: { record } }: Planned, values: Values): Record<string, string> {
  const errors: Record<string, string> = {};
  if (!rollingArgs.maxUnavailable.safeParse(textIn(values, "roll:most")).success)
    errors["roll:most"] = "A whole number from 1, or a percentage like 10%.";
  if (!rollingArgs.stopOnFailure.safeParse(textIn(values, "roll:failures")).success)
    errors["roll:failures"] = "A whole number from 1 to 1,000.";
  if (asksNumber(record) && textIn(values, "roll:number") !== String(record.total))
    errors["roll:number"] = `Type ${record.total}: the number of VMs that will change.`;
  return errors;
}
