import { asked, mustAsk, renderConfirm } from "../../door/render-alert.ts";
import { calledName, isChange } from "../../registry/define.ts";
import { type Input, hasForm, withTarget } from "../../registry/invocation.ts";
import { parseInvocation } from "../../registry/parse.ts";
import { targetOf } from "../../requests/submit/submit.ts";
import { overviewOf, type StoredAlert } from "../../door/alerts.ts";
import { isToConfirm } from "../../policy/refusal.ts";
import type { Press } from "../receive/interaction.ts";
import { type Act, commandNamed, outdated, personOf } from "./authorize.ts";
import { run } from "./run.ts";
import { alreadyRequested } from "./submit.ts";

/**
 * A button of an alert: a command on one of its VMs, as if whoever pressed had typed it, with its result in the thread of the
 * alert. Each button makes one request, however often and by whomever it is pressed.
 */
export async function pressAlert(act: Act<Press>, value: Input): Promise<void> {
  const { interaction, reply, gateway } = act;
  const { action, channelId } = interaction;
  const { alerts, store, policy } = gateway;
  const { alert: named, vm: at, n } = value;
  const alert = typeof named === "string" ? await alerts.get(named) : undefined;
  const vm = typeof at === "number" ? alert?.vms[at] : undefined;
  if (!alert || !vm || typeof n !== "number" || channelId !== alert.channelId) throw outdated();
  // The same for one that is gone and for one that this person doesn't see
  const found = await gateway.inventory.findVm(vm.id, { onlyKnown: true });
  if (!("found" in found) || found.found.id !== vm.id) throw outdated();
  const target = targetOf(found.found);
  const isAsked = action.endsWith(asked);
  const plain = isAsked ? action.slice(0, -asked.length) : action;
  const command = commandNamed(plain.slice("alert:".length), gateway);
  const invocation = parseInvocation(command, withTarget(command, {}, target));
  const threadTs = (await messageOf(alert, act))?.ts;
  const id = `after:${alert.id}:${vm.id}:${command.name}:${n}`;
  const there = { ...interaction, id, ...(threadTs ? { threadTs } : {}) };
  if (!isChange(command)) return run(invocation, { ...act, interaction: there });
  if (alert.state === "ended") throw outdated();
  const first = await store.madeBy(id);
  if (first)
    return reply.privately(
      await alreadyRequested(first.record.id, gateway, "This button was already used."),
    );
  if (!isAsked && mustAsk(command, target, policy)) {
    return reply.privately(
      renderConfirm({ action: plain, value: interaction.value }, command, target),
    );
  }
  await run(invocation, { ...act, interaction: there });
  const isOpened = hasForm(command) || isToConfirm(policy, target);
  if (!isOpened && !(await store.madeBy(id))) return;
  const { name: by } = await personOf(act);
  await alerts.note(alert.id, { by, did: `${command.say.verb} ${calledName(target)}` }, n);
}

/** Where the alert is told: its own message, or one with others. */
async function messageOf(alert: StoredAlert, { gateway: { alerts } }: Act) {
  const overview = overviewOf(alert);
  if (overview === undefined) return alert.delivered.card;
  const [channelId, ts] = ((await alerts.outbox.get(overview))["card"] ?? "").split(" ");
  return channelId && ts ? { channelId, ts } : undefined;
}
