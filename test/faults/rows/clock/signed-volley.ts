import { setTimeout as sleep } from "node:timers/promises";
import type { Stage } from "../../stage/stage.ts";
import type { Bot } from "../../stage/start-bot.ts";

export interface SentOne {
  vm: string;
  status: number;
  /** What its age leaves no doubt about, whenever the gateway looked at its clock; undefined in between. */
  must?: 200 | 401;
}

interface Delivery {
  id: string;
  payload: Record<string, string>;
}

const toleranceSeconds = 300;
const stepMs = 2000;

/**
 * Sends signed commands of 297 to 303 s of age, three copies of each, while the gateway's clock steps: once ahead, once
 * back. Each age and step has a VM of its own.
 */
export async function sendWhileStepping(
  stage: Stage,
  gateway: Bot,
  sampleId: string,
): Promise<SentOne[]> {
  const deliveries = await stage.slack.question<Delivery[]>("deliveries", "command");
  const sample = deliveries.find(({ id }) => id === sampleId);
  if (!sample) throw new Error("there is no delivery to begin with");
  const vms = (await stage.service.vms()).slice(5);
  const all: SentOne[] = [];
  let n = 0;
  for (const [from, to] of [
    [0, stepMs],
    [stepMs, 0],
  ] as const) {
    for (let age = 297; age <= 303; age++) {
      const vm = vms[n]?.id ?? "";
      n += 1;
      const trigger = (sample.payload["trigger_id"] ?? "").replace(/^\d+/, String(9_000_000 + n));
      const text = `restart ${vm}`;
      const body = new URLSearchParams({
        ...sample.payload,
        command: "/vm",
        text,
        trigger_id: trigger,
      }).toString();
      await gateway.setClock(from);
      const seconds = Math.floor(Date.now() / 1000) - age;
      const signature = await stage.slack.question<string>("sign", seconds, body);
      const headers = {
        "content-type": "application/x-www-form-urlencoded",
        "x-slack-request-timestamp": String(seconds),
        "x-slack-signature": signature,
      };
      const send = async (): Promise<SentOne> => {
        const before = Date.now();
        const { status } = await stage.slack.question<{ status: number }>("sendRaw", body, headers);
        const youngest = (before + Math.min(from, to)) / 1000 - seconds;
        const oldest = (Date.now() + Math.max(from, to)) / 1000 - seconds;
        if (oldest <= toleranceSeconds) return { vm, status, must: 200 };
        // Bolt goes by whole seconds
        if (youngest > toleranceSeconds + 1) return { vm, status, must: 401 };
        return { vm, status };
      };
      const [first, , second, third] = await Promise.all([
        send(),
        gateway.setClock(to),
        send(),
        sleep(3).then(send),
      ]);
      stage.faults += 1;
      all.push(first, second, third);
    }
  }
  return all;
}
