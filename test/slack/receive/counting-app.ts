import { App, type Receiver, type ReceiverEvent } from "@slack/bolt";
import { slackLogger, silentLog } from "../../../src/log/log.ts";

/** Bolt's App as a receiver sees it: acks everything and keeps the bodies. */
export class CountingApp extends App {
  readonly bodies: unknown[] = [];

  constructor(receiver: Receiver) {
    super({
      receiver,
      token: "xoxb-test",
      botId: "B1",
      botUserId: "U1",
      tokenVerificationEnabled: false,
      convoStore: false,
      logger: slackLogger(silentLog()),
    });
  }

  override async processEvent({ body, ack }: ReceiverEvent): Promise<void> {
    this.bodies.push(body);
    await ack();
  }
}
