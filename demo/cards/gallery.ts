import type { GalleryCard } from "../../sandbox/page/index.ts";
import { asPost } from "../../src/messages/notification.ts";
import { endless, usual } from "./example.ts";
import { readExamples } from "./index.ts";

/** All examples, as the sandbox's page shows them. */
export async function makeCards(names: "usual" | "long"): Promise<readonly GalleryCard[]> {
  const about = names === "long" ? endless : usual;
  const all = (await readExamples()).flatMap(({ group, examples }) =>
    examples.map(async ({ name, make, reader }): Promise<GalleryCard> => {
      const shown = await make(about);
      if ("type" in shown) return { group, name, shown };
      const push = reader === undefined ? undefined : { reader, text: asPost(shown).text };
      return { group, name, push, shown };
    }),
  );
  return Promise.all(all);
}
