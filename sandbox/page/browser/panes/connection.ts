import type { Around } from "../../around.ts";
import type { Seen } from "../../../slack/seen.ts";
import type { Answer, Do } from "../elements/surface.ts";
import type { StreamNews } from "./stream.ts";

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
  const { port } = new SharedWorker("/panes/stream.ts", { type: "module" });
  port.addEventListener("message", ({ data: news }: MessageEvent<StreamNews>) => {
    if (news.is === "around") spec.around(JSON.parse(news.data));
    else if (news.is === "changed") void look();
    else spec.lost(news.is === "lost");
  });
  port.start();
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
