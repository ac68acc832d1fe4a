import {
  CLIENT_CAPABILITIES_META_KEY,
  type ElicitRequestFormParams,
  type ElicitResult,
  type InputRequiredResult,
  inputRequired,
  inputResponse,
  type McpServer,
  type ProtocolEra,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { type Approval, type Command, describeQuestion, isShellfleetError, type Session } from '@shellfleet/client';
import { z } from 'zod';
import type { OpenFleet } from '../connections/connection.ts';

/** Longest question that a client can show. */
const MOST_CHARACTERS = 8_000;

const ANSWERS = ['approve this command', 'approve in this session', 'deny'] as const;
const contentSchema = z.object({ answer: z.enum(ANSWERS) });
const capabilitiesSchema = z.object({
  elicitation: z.object({ form: z.unknown(), url: z.unknown() }).partial().optional(),
});

/** A question that a command waits for, and who can answer it. */
export interface HeldQuestion {
  id: string;
  words: string;
}

/**
 * The person at the client of one call. The person answers questions of commands by elicitation if the caller may
 * answer, the fleet lets callers answer their own commands, the session does not refuse it, and the client can ask.
 */
export class Person {
  readonly #open: OpenFleet;
  readonly #server: McpServer;
  readonly #era: ProtocolEra;
  readonly #context: ServerContext;
  /** Questions that this call has asked. A question is asked once in a call. */
  readonly #asked = new Set<string>();
  /** Why the fleet did not accept an answer. */
  #refusal: string | undefined;

  constructor(open: OpenFleet, server: McpServer, era: ProtocolEra, context: ServerContext) {
    this.#open = open;
    this.#server = server;
    this.#era = era;
    this.#context = context;
  }

  /**
   * Asks the person about a command that waits for an approval, and passes the answer on. Returns a request if the
   * client has to ask and then to repeat the call, as clients of the protocol of 2026 do.
   */
  async ask(session: Session, command: Command, deadline: number): Promise<InputRequiredResult | undefined> {
    const question = await this.#find(session, command);
    if (question === undefined || this.#asked.has(question.id)) return undefined;
    if ((await this.#obstacle(session, question)) !== undefined) return undefined;
    this.#asked.add(question.id);
    if (this.#era === 'legacy') {
      await this.#answer(question, await this.#elicit(question, deadline));
      return undefined;
    }
    const given = inputResponse(this.#context.mcpReq.inputResponses, question.id);
    if (given.kind !== 'elicit') {
      const inputRequests = { [question.id]: inputRequired.elicit(toForm(question)) };
      return inputRequired({ inputRequests, requestState: command.id });
    }
    await this.#answer(question, given);
    return undefined;
  }

  /** Returns the question that a command waits for, and how it can be answered. */
  async question(session: Session, command: Command): Promise<HeldQuestion | undefined> {
    const question = await this.#find(session, command);
    if (question === undefined) return undefined;
    const { id, reason } = question;
    const obstacle = this.#refusal ?? (await this.#obstacle(session, question));
    const here =
      obstacle === undefined ? 'The person at this client has not answered; poll asks again.' : `${obstacle}.`;
    const words = ` A person has to approve it: ${reason} ${here} Anybody who may answer can also do so with \`shellfleet approvals approve ${id}\` or \`deny\`; \`shellfleet approvals watch\` shows the question.`;
    return { id, words };
  }

  /** Finds the question of a command. Sessions with equal questions share one, with the command that asked first. */
  async #find({ id }: Session, command: Command): Promise<Approval | undefined> {
    const pending = await this.#open.fleet.approvals.list({ sessionId: id });
    const own = pending.find(({ commandId }) => commandId === command.id);
    return own ?? (pending.length === 1 ? pending[0] : undefined);
  }

  /** Returns why the person at the client cannot answer, or undefined if the person can. */
  async #obstacle(session: Session, question: Approval): Promise<string | undefined> {
    const { fleet, scopes } = this.#open;
    if (!scopes.has('approve')) return 'The key of this MCP server may not answer';
    if (this.#era !== 'legacy' && !scopes.has('read'))
      return 'This client repeats its call with the answer, for which the key of this MCP server would have to have the scope read';
    if (!this.#canAsk()) return 'This client cannot ask its person';
    const { approval } = session.spec;
    if (typeof approval === 'object' && approval.reject.mcpElicitations)
      return 'This session does not let the person at a client answer';
    const configured = await fleet.configuration();
    if (configured?.configuration.approvals?.self !== true)
      return 'This fleet lets nobody answer what they submitted themselves';
    return toMessage(question).length > MOST_CHARACTERS ? 'The question is too long for a client' : undefined;
  }

  #canAsk(): boolean {
    const envelope: Record<string, unknown> = this.#context.mcpReq.envelope ?? {};
    const declared =
      this.#era === 'modern' ? envelope[CLIENT_CAPABILITIES_META_KEY] : this.#server.server.getClientCapabilities();
    const elicitation = capabilitiesSchema.safeParse(declared).data?.elicitation;
    // An empty capability stands for forms.
    return elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined);
  }

  /** Asks over the connection. Returns undefined if nobody answers before the call has to be answered. */
  async #elicit(question: Approval, deadline: number): Promise<ElicitResult | undefined> {
    const { elicitInput, signal } = this.#context.mcpReq;
    const timeout = Math.max(1, deadline - Date.now());
    return elicitInput(toForm(question), { timeout, signal }).catch(() => undefined);
  }

  async #answer(
    { id }: Approval,
    given: { action: ElicitResult['action']; content?: unknown } | undefined,
  ): Promise<void> {
    const { approvals } = this.#open.fleet;
    const answer = contentSchema.safeParse(given?.content).data?.answer;
    const isDenied = given?.action === 'decline' || (given?.action === 'accept' && answer === 'deny');
    try {
      if (isDenied) await approvals.deny(id, 'The person at the MCP client denied it.');
      else if (given?.action === 'accept' && answer !== undefined)
        await approvals.approve(id, { scope: answer === 'approve in this session' ? 'session' : 'command' });
    } catch (error) {
      if (!isShellfleetError(error)) throw error;
      // Somebody else may have answered first.
      if (error.code !== 'APPROVAL_NOT_FOUND') this.#refusal = error.message.replace(/\.$/, '');
    }
  }
}

function toForm(question: Approval): ElicitRequestFormParams {
  return {
    mode: 'form',
    message: toMessage(question),
    requestedSchema: {
      type: 'object',
      properties: { answer: { type: 'string', title: 'Answer', enum: [...ANSWERS] } },
      required: ['answer'],
    },
  };
}

/** Returns the question in words. A client offers no answer for all commands that begin alike. */
function toMessage({ amendment: _, ...question }: Approval): string {
  return ['May this command run? The model wrote it: read the script.', ...describeQuestion(question)].join('\n');
}
