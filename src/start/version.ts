import project from "../../package.json" with { type: "json" };

/** As in package.json. */
export const { version } = project;
