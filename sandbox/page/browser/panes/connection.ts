import type { Around } from "../../around.ts";
import type { Seen } from "../../../slack/seen.ts";
import type { Answer, Do } from "../elements/surface.ts";

/** The page's line to its server: what this person sees now, and what they do. */
export interface Connection {
  /** Becomes someone else; without a name, the first person there is. */
  be(as: string | undefined): void;
  do: Do;
  /** Changes the weather. */
  turn(what: object): Promise<void>;
  /** Resolves when nothing that was chosen is still under way. */
  settled(): Promise<unknown>;
}

export function connect(spec: {
  show: (seen: Seen) => void;
  around: (around: Around) => void;
  complain: (text: string) => void;
  lost: (is: boolean) => void;
}): Connection {
  let as: string | undefined;
  let events: EventSource | undefined;
  let looking = false;
  let again = false;
  const underWay = new Set<Promise<unknown>>();

  /** Looks once more for everything that happened while looking. */
  const look = async (): Promise<void> => {
    if (looking) {
      again = true;
      return;
    }
    looking = true;
    try {
      do {
        again = false;
        const asked = as;
        const answer = await fetch(`/seen?as=${encodeURIComponent(asked ?? "")}`);
        const body: Seen & { error?: string } = await answer.json();
        if (asked !== as) again = true;
        else if (!answer.ok) spec.complain(body.error ?? `The sandbox answered ${answer.status}`);
        else spec.show(body);
      } while (again);
    } catch {
      spec.lost(true);
    } finally {
      looking = false;
    }
  };
  const listen = () => {
    events?.close();
    events = new EventSource(`/events?as=${encodeURIComponent(as ?? "")}`);
    events.addEventListener("open", () => spec.lost(false));
    events.addEventListener("error", () => spec.lost(true));
    events.addEventListener("around", ({ data }) => spec.around(JSON.parse(data)));
    events.addEventListener("changed", () => void look());
  };
  const post = async (path: string, words: object): Promise<Answer | undefined> => {
    try {
      const answer = await fetch(path, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(words),
      });
      const body: Answer & { problem?: string } = await answer.json();
      if (answer.ok) return body;
      spec.complain(body.problem ?? `The sandbox answered ${answer.status}`);
    } catch {
      spec.complain("The sandbox can't be reached.");
    }
    return undefined;
  };
  return {
    be: (next) => {
      as = next;
      listen();
      void look();
    },
    do: (action, words) => {
      const doing = post("/do", { as, action, ...words });
      if (action === "chooses") {
        underWay.add(doing);
        void doing.finally(() => underWay.delete(doing));
      }
      return doing;
    },
    turn: async (what) => void (await post("/weather", what)),
    settled: () => Promise.all(underWay),
  };
}
