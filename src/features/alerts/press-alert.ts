import { confirmedSuffix, isChange } from "../../registry/define.ts";
import { withTarget } from "../../registry/invocation.ts";
import { parseInvocation } from "../../registry/parse.ts";
import { scopeOfPerson } from "../../core/permit/access.ts";
import { targetOf } from "../../core/submit/resolve-targets.ts";
import {
  type PressHandler,
  commandNamed,
  factReader,
  outdated,
  personOf,
} from "../../talk/gateway-context.ts";
import { run } from "../../talk/run.ts";
import { alreadyRequested } from "../../talk/submit-change.ts";
import { remedyPartOf } from "../alert-part.ts";
import type { Alerts } from "./alerts.ts";
import { readAdvice } from "./read-advice.ts";
import { mustAsk, renderConfirm } from "./render-alert.ts";

/**
 * Handles a button of an alert: runs a command on one of its VMs, as if the person had typed it,
 * and posts the result in the alert's thread. Each button makes one request, however often and by
 * whomever it is pressed.
 */
export const pressAlert =
  (alerts: Alerts): PressHandler =>
  async (act, { alert: of, vm: at, n }) => {
    const { interaction, reply, gateway } = act;
    const { channelId, value } = interaction;
    const { store, policy } = gateway;
    const alert = typeof of === "string" ? await alerts.get(of) : undefined;
    const vm = typeof at === "number" ? alert?.record.vms[at] : undefined;
    const place = alert && (await alerts.placeOf(alert));
    if (!alert || !vm || typeof n !== "number") throw outdated();
    if (channelId !== (place?.channelId ?? alert.record.channelId)) throw outdated();
    // A VM that is gone and a VM that this person may not see get the same answer, so the answer
    // gives nothing away.
    const match = await gateway.inventory.findVm(vm.id, { onlyKnown: true });
    if (!("record" in match) || match.record.id !== vm.id) throw outdated();
    const target = targetOf(match.record);
    const isConfirmed = interaction.action.endsWith(confirmedSuffix);
    const action = isConfirmed
      ? interaction.action.slice(0, -confirmedSuffix.length)
      : interaction.action;
    const command = commandNamed(action.slice("alert:".length), gateway);
    const threadTs = place?.ts;
    const origin = {
      kind: "alert",
      alert: alert.id,
      vm: vm.id,
      command: command.name,
      after: n,
    } as const;
    const there = { ...interaction, ...(threadTs ? { threadTs } : {}) };
    const invocation = parseInvocation(command, withTarget(command, {}, target));
    if (!isChange(command)) return run(invocation, { ...act, interaction: there });
    if (alert.state === "ended") throw outdated();
    const first = await store.madeBy(origin);
    // The request is noted already, unless the process that made it died right then.
    if (first) await alerts.note(alert.id, first.record.id);
    const used = "This button was already used.";
    if (first) return reply.privately(await alreadyRequested(first.record.id, gateway, used));
    if (mustAsk(command, target, policy) === "here" && !isConfirmed) {
      const scope = scopeOfPerson(policy, await personOf(act), gateway.ourTeamId);
      const remedies = remedyPartOf.ifAny(gateway);
      const [facts, advice] = await Promise.all([
        gateway.factsAbout([target], { reader: factReader(gateway), tellsRecent: true }),
        readAdvice(target, alert, { remedies, scope }),
      ]);
      return reply.privately(
        renderConfirm({ action, value }, command, { target, facts, advice }, alert),
      );
    }
    await run(invocation, { ...act, interaction: there, origin });
  };
