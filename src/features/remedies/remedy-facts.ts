import type { Fact, FactSource } from "../../core/facts/fact.ts";
import type { Journal } from "../../core/request/journal.ts";
import type { StoredRequest } from "../../core/request/stored-request.ts";
import { firstFew, md, name } from "../../messages/markdown.ts";
import { calledName, type Target } from "../../registry/define.ts";
import type { AlertPart } from "../alert-part.ts";
import { isSameFiring } from "./judge-remedy.ts";
import type { Remedies, StoredRemedy } from "./remedies.ts";
import { wholeMinutes } from "./render-remedy.ts";

/** Says that an alert goes on after a change of its VM, until it is looked whether the change ended it. */
export function remedyFacts(on: {
  remedies: Pick<Remedies, "get" | "openIds">;
  store: Pick<Journal, "get">;
  config: { readonly policy: { timing: { remedyMs: number } } };
  /** Undefined where nothing tells of alerts. */
  alerts(): Pick<AlertPart, "find"> | undefined;
}): FactSource {
  const factOf = async (
    remedy: StoredRemedy,
    { request, target, now }: { request: StoredRequest | undefined; target: Target; now: number },
  ): Promise<Fact | undefined> => {
    const { record, judgment } = remedy;
    if (judgment || request?.state !== "done") return undefined;
    const waitMs = request.changedAt + on.config.policy.timing.remedyMs - now;
    const alertsOnVm = await on.alerts()?.find(record.alert, record.vmId);
    const firing = alertsOnVm?.alerts.filter((alert) => {
      const since = record.fired[alert.name];
      return since !== undefined && isSameFiring(alert, since);
    });
    const names = [...new Set(firing?.map((alert) => alert.name))];
    if (names.length === 0 || waitMs <= 0) return undefined;
    const { id, name: projectName = id } = record.project;
    const projects = [{ id, name: projectName }, ...record.alertProjects];
    const fires = names.length > 1 ? "fire" : "fires";
    return {
      kind: "remedy",
      about: target,
      severity: "info",
      sign: "⏳",
      text: md`${firstFew(names, 3)} still ${fires} on ${name(calledName(target))}; Gatehouse looks again in ${wholeMinutes(waitMs)}.`,
      request: record.request,
      learnedOf: projects.map((project) => ({
        ...target,
        projectId: project.id,
        projectName: project.name,
      })),
    };
  };

  return {
    name: "whether a change ended an alert",
    async read({ targets, now }) {
      const open = await Promise.all((await on.remedies.openIds()).map(on.remedies.get));
      const facts = open.map(async (remedy) => {
        const target = targets.find(({ id }) => id === remedy?.record.vmId);
        if (!remedy || !target) return undefined;
        const request = await on.store.get(remedy.record.request);
        return factOf(remedy, { request, target, now });
      });
      return (await Promise.all(facts)).filter((fact) => fact !== undefined);
    },
    async readAfter(request, now) {
      const { id, target } = request.record;
      const remedy = await on.remedies.get(id);
      const fact = remedy && (await factOf(remedy, { request, target, now }));
      return fact ? [fact] : [];
    },
  };
}
