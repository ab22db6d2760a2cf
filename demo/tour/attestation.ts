import type { Tour } from "./tour.ts";

/** One VM that verifies, one with another image, one with debugging on, one whose vendor's list ran out. */
export const attestationSteps: readonly ((tour: Tour) => Promise<void>)[] = [
  async (tour) => {
    const olivia = tour.world.slack.person("olivia");
    tour.scene(
      "Four VMs of the ledger, and the service says verified of each. Gatehouse judges their evidence itself.",
    );
    await tour.types(olivia, "ops", "/vm attest ledger-*");
    await tour.sees(
      olivia,
      "ops",
      /2 failed, ❔ 1 could not verify, ✅ 1 verified[\s\S]*matches no pin[\s\S]*Turin has expired/,
    );
    await tour.types(olivia, "ops", "/vm attest ledger-1");
    await tour.sees(olivia, "ops", /Verified.*ledger-1[\s\S]*AMD's signature holds/);
    await tour.types(olivia, "ops", "/vm attest ledger-3");
    await tour.sees(olivia, "ops", /Failed.*ledger-3[\s\S]*Debugging is on/);
  },
  async (tour) => {
    const { world } = tour;
    const [olivia, amir] = [world.slack.person("olivia"), world.slack.person("amir")];
    tour.scene(
      "vault-1 has no pin. Olivia proposes what it measures; Amir sees the values and approves. Nothing is sent.",
    );
    const before = world.compute.writes().length;
    await tour.types(olivia, "ops", "/gatehouse pins propose vault-1 as built last week");
    await tour.sees(amir, "ops", /Pin vault-1[\s\S]*not pinned until now/);
    await tour.presses(amir, "Approve");
    await tour.sees(olivia, "ops", /✅ (@olivia )?Pinned vault-1/);
    // On a busy machine its record may wait longer for the seal than the answer does
    for (let tries = 0; tries < 5; tries++) {
      await tour.types(olivia, "ops", "/vm attest vault-1");
      const said = await tour.sees(olivia, "ops", /(Verified|Could not verify): vault-1/);
      if (!JSON.stringify(said).includes("waits to be sealed")) break;
    }
    await tour.sees(olivia, "ops", /Verified.*vault-1/);
    tour.holds("the service was asked for no change", world.compute.writes().length === before);
  },
];
