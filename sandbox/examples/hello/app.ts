import { App, type BlockAction } from "@slack/bolt";

/** A Bolt app like any other. Where SLACK_API_URL is set, that Slack is asked instead of slack.com. */
const { SLACK_BOT_TOKEN = "", SLACK_APP_TOKEN = "", SLACK_API_URL: slackApiUrl } = process.env;
const app = new App({
  token: SLACK_BOT_TOKEN,
  appToken: SLACK_APP_TOKEN,
  socketMode: true,
  clientOptions: slackApiUrl === undefined ? {} : { slackApiUrl },
});

app.command("/hello", async ({ ack, command, respond }) => {
  await ack();
  await respond({
    text: `Hello, ${command.user_name}.`,
    blocks: [
      { type: "section", text: { type: "mrkdwn", text: `Hello, <@${command.user_id}>.` } },
      {
        type: "actions",
        elements: [
          { type: "button", action_id: "wave", text: { type: "plain_text", text: "Wave" } },
        ],
      },
    ],
  });
});

app.action<BlockAction>("wave", async ({ ack, body, say }) => {
  await ack();
  await say(`<@${body.user.id}> waves.`);
});

await app.start();
