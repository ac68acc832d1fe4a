import { type Approval, type ApprovalScope, describeQuestion } from '@shellfleet/client';
import { toPrintable } from '@shellfleet/protocol';
import type { KeyPress } from '../full-screen.ts';
import { type ScreenLine, wrapLines } from '../wrap-lines.ts';
import { drawList, fill, type Listed } from './draw-list.ts';
import { describeEnd, describeScope, firstLineOf, isSame } from './screen-texts.ts';

// The screen at which a person answers questions, without I/O.
//
// SCREEN-1. A number is never given to a second question, and the selection is a question, not a place in the list. So
//           a key acts on the same question however the list changes.
// SCREEN-2. A question is approved only after all of its current rows were drawn. A changed question is drawn again.

export type ScreenAnswer =
  | { type: 'approve'; scope: ApprovalScope; approval: Approval }
  | { type: 'deny'; reason: string; abort: boolean; approval: Approval };

export type Action = { type: 'leave' } | { type: 'answer'; answer: ScreenAnswer };

type View =
  | { type: 'list' }
  | ({ type: 'question' } & Reading)
  | ({ type: 'confirm'; scope: ApprovalScope } & Reading)
  | ({ type: 'reason'; abort: boolean; text: string } & Reading);

interface Reading {
  id: string;
  top: number;
  /** Number of rows, counted from the first, that have all been drawn in a width of `columns`. */
  readTo: number;
  columns: number;
}
type OpenView = Exclude<View, { type: 'list' }>;

const MOST_EVENTS = 4;
const REASON_CHARS = 1_024;

export class ApprovalsScreen {
  readonly #tenant: string;
  readonly #questions = new Map<string, Listed>();
  #lastNumber = 0;
  /** Lines about questions that have ended, newest last. */
  readonly #events: string[] = [];
  #view: View = { type: 'list' };
  #selected: string | undefined;
  /** Digits of a question's number, as typed so far. */
  #typed = '';
  #notice = '';
  #problem = '';
  #isSending = false;
  /** Number of rows of the open question, as drawn last. */
  #bodyLength = 0;
  /** Number of the open question's rows that had room on the screen. */
  #bodyRows = 1;

  constructor(tenant: string) {
    this.#tenant = tenant;
  }

  /** Shows a question that was asked, has changed, or has ended. Returns whether it is new. */
  show(approval: Approval): boolean {
    const known = this.#questions.get(approval.id);
    if (known === undefined) {
      if (approval.state !== 'pending') return false;
      this.#lastNumber += 1;
      this.#questions.set(approval.id, { number: this.#lastNumber, approval });
      if (this.#questions.size === 1 && this.#lastNumber === 1) this.#selected = approval.id;
      return true;
    }
    const before = known.approval;
    known.approval = approval;
    if (approval.state === 'pending') {
      if (isSame(before, approval)) return false;
      this.#backToQuestion(approval.id, 'It has changed. Read it again before you approve it.');
      return false;
    }
    this.#events.push(`#${known.number} ${describeEnd(approval)}: ${toPrintable(firstLineOf(approval))}`);
    if (this.#events.length > MOST_EVENTS) this.#events.shift();
    if (this.#selected === approval.id) this.#selected = undefined;
    this.#backToQuestion(approval.id, '');
    if (!this.#isOpen(approval.id)) this.#questions.delete(approval.id);
    return false;
  }

  /** Shows a problem of the fleet above everything else; '' removes it. Returns true if the screen changes. */
  warn(problem: string): boolean {
    const shown = toPrintable(problem);
    const isNew = shown !== this.#problem;
    this.#problem = shown;
    return isNew;
  }

  /** Shows whether the last answer was accepted, with a notice. */
  sent(isGiven: boolean, notice: string): void {
    this.#isSending = false;
    this.#notice = toPrintable(notice);
    if (isGiven) this.#backToList();
  }

  press(key: KeyPress): Action | undefined {
    if (key.ctrl && (key.name === 'c' || key.name === 'd')) return { type: 'leave' };
    if (this.#isSending) return undefined;
    this.#notice = '';
    const view = this.#view;
    const listed = view.type === 'list' ? undefined : this.#questions.get(view.id);
    if (view.type === 'list' || listed === undefined) return this.#pressInList(key);
    switch (view.type) {
      case 'question':
        this.#pressInQuestion(key, view, listed);
        return undefined;
      case 'confirm':
        this.#view = { ...toReading(view), type: 'question' };
        if (key.text !== 'y') return undefined;
        return this.#send({ type: 'approve', scope: view.scope, approval: listed.approval });
      case 'reason':
        return this.#typeReason(key, view, listed);
    }
  }

  /** Returns at most `rows` rows of at most `columns` columns. The returned rows of a question count as read. */
  draw(rows: number, columns: number): string[] {
    const view = this.#view;
    const listed = view.type === 'list' ? undefined : this.#questions.get(view.id);
    const drawn =
      view.type === 'list' || listed === undefined
        ? this.#drawList(rows, columns)
        : this.#drawQuestion(view, listed, rows, columns);
    return drawn.slice(0, rows);
  }

  #pressInList(key: KeyPress): Action | undefined {
    const { name, text = '' } = key;
    if (text === 'q') return { type: 'leave' };
    const typed = this.#typed;
    this.#typed = '';
    if (/^\d$/.test(text)) this.#typed = `${typed}${text}`.slice(-6);
    else if (name === 'backspace') this.#typed = typed.slice(0, -1);
    else if (name === 'up' || text === 'k') this.#select(-1);
    else if (name === 'down' || text === 'j') this.#select(1);
    else if (name === 'return' || name === 'enter') this.#open(typed);
    return undefined;
  }

  #select(step: number): void {
    const ids = [...this.#questions.keys()];
    const at = this.#selected === undefined ? -1 : ids.indexOf(this.#selected);
    if (at < 0) this.#selected = step > 0 ? ids[0] : ids.at(-1);
    else this.#selected = ids[Math.min(ids.length - 1, Math.max(0, at + step))];
  }

  #open(typed: string): void {
    const listed = [...this.#questions].find(([id, { number }]) =>
      typed === '' ? id === this.#selected : number === Number(typed),
    );
    if (listed === undefined) {
      this.#notice = typed === '' ? 'Select a question first.' : `No question #${Number(typed)} waits.`;
      return;
    }
    const [id] = listed;
    this.#selected = id;
    this.#view = { type: 'question', id, top: 0, readTo: 0, columns: 0 };
  }

  #pressInQuestion(key: KeyPress, view: View & { type: 'question' }, { approval }: Listed): void {
    const { name, text } = key;
    const page = Math.max(1, this.#bodyRows - 1);
    const moves: Record<string, number> = { up: -1, down: 1, pageup: -page, pagedown: page, space: page };
    const move = moves[name ?? ''] ?? { k: -1, j: 1 }[text ?? ''];
    if (move !== undefined) this.#view = { ...view, top: this.#clampTop(view.top + move) };
    else if (name === 'home') this.#view = { ...view, top: 0 };
    else if (name === 'end') this.#view = { ...view, top: this.#clampTop(Number.MAX_SAFE_INTEGER) };
    else if (name === 'escape' || name === 'backspace' || text === 'q') this.#backToList();
    else if (approval.state !== 'pending') return;
    else if (text === 'd' || text === 'x') this.#view = { ...view, type: 'reason', abort: text === 'x', text: '' };
    else this.#chooseScope(text, view, approval);
  }

  #chooseScope(text: string | undefined, view: View & { type: 'question' }, { amendment }: Approval): void {
    const scopes: Record<string, ApprovalScope> = { a: 'command', s: 'session', p: 'prefix' };
    const scope = scopes[text ?? ''];
    if (scope === undefined) return;
    if (scope === 'prefix' && amendment === undefined) this.#notice = 'No rule is offered for it: use a or s.';
    else if (view.readTo < this.#bodyLength) this.#notice = 'Read all of it first: Home, then PageDown.';
    else this.#view = { ...view, type: 'confirm', scope };
  }

  #typeReason(key: KeyPress, view: View & { type: 'reason' }, { approval }: Listed): Action | undefined {
    const { name, text, ctrl } = key;
    if (name === 'escape') this.#view = { ...toReading(view), type: 'question' };
    else if (name === 'backspace') this.#view = { ...view, text: [...view.text].slice(0, -1).join('') };
    else if (ctrl && name === 'u') this.#view = { ...view, text: '' };
    else if (name === 'return' || name === 'enter') {
      this.#view = { ...toReading(view), type: 'question' };
      return this.#send({ type: 'deny', reason: view.text.trim(), abort: view.abort, approval });
    } else if (text !== undefined && !ctrl && toPrintable(text) === text)
      this.#view = { ...view, text: `${view.text}${text}`.slice(0, REASON_CHARS) };
    return undefined;
  }

  #send(answer: ScreenAnswer): Action {
    this.#isSending = true;
    this.#notice = 'Sending the answer…';
    return { type: 'answer', answer };
  }

  #isOpen(id: string): boolean {
    return this.#view.type !== 'list' && this.#view.id === id;
  }

  /** Shows the question again if it is open, and drops the typed answer. */
  #backToQuestion(id: string, notice: string): void {
    const view = this.#view;
    if (view.type === 'list' || view.id !== id) return;
    this.#view = { ...toReading(view), type: 'question', readTo: 0 };
    if (notice !== '') this.#notice = notice;
  }

  #backToList(): void {
    const view = this.#view;
    this.#view = { type: 'list' };
    if (view.type !== 'list' && this.#questions.get(view.id)?.approval.state !== 'pending')
      this.#questions.delete(view.id);
  }

  #drawList(rows: number, columns: number): string[] {
    const list = {
      ...{ tenant: this.#tenant, questions: [...this.#questions.values()], selected: this.#selected },
      ...{ events: this.#events, notice: `${this.#notice}${this.#typed === '' ? '' : ` #${this.#typed}_`}` },
    };
    return drawList({ ...list, head: this.#drawProblem() }, rows, columns);
  }

  #drawProblem(): ScreenLine[] {
    return this.#problem === '' ? [] : [{ text: `! ${this.#problem}` }];
  }

  #clampTop(top: number): number {
    return Math.max(0, Math.min(top, this.#bodyLength - this.#bodyRows));
  }

  #drawQuestion(view: OpenView, listed: Listed, rows: number, columns: number): string[] {
    const { number, approval } = listed;
    const state = approval.state === 'pending' ? 'waits' : describeEnd(approval);
    const head = wrapLines([...this.#drawProblem(), { text: `Question #${number} ${state}.` }, { text: '' }], columns);
    const body = wrapLines(describeQuestion(approval, 'The rule (p)').map(toScreenLine), columns);
    const foot = wrapLines(
      [{ text: '' }, ...this.#describeKeys(view, listed).map((text) => ({ text })), { text: this.#notice }],
      columns,
    );
    const room = rows - head.length - foot.length - 1;
    this.#bodyRows = Math.max(1, room);
    this.#bodyLength = body.length;
    const top = this.#clampTop(view.top);
    const end = Math.min(body.length, top + this.#bodyRows);
    if (view.columns !== columns) Object.assign(view, { columns, readTo: 0 });
    view.top = top;
    if (room > 0 && top <= view.readTo) view.readTo = Math.max(view.readTo, end);
    const place = end < body.length || top > 0 ? `rows ${top + 1} to ${end} of ${body.length}: Up, Down, PageDown` : '';
    return [...head, ...fill(body.slice(top, end), this.#bodyRows), place, ...foot];
  }

  #describeKeys(view: OpenView, { approval }: Listed): string[] {
    if (this.#isSending) return [];
    if (approval.state !== 'pending') return ['Esc: back'];
    switch (view.type) {
      case 'confirm':
        return [describeScope(view.scope, approval), 'y: yes   any other key: no'];
      case 'reason':
        return [
          `${view.abort ? 'Deny it, and cancel what waits behind it' : 'Deny it'}. Why (shown in its Result; may be empty): ${view.text}_`,
          'Enter: deny   Esc: back',
        ];
      case 'question':
        return [
          `a: let it run   s: also when its sessions ask it again${approval.amendment === undefined ? '' : '   p: allow the rule'}`,
          'd: deny   x: deny, and cancel what waits behind it   Esc: back',
        ];
    }
  }
}

const toReading = ({ id, top, readTo, columns }: OpenView): Reading => ({ id, top, readTo, columns });

/** Marks the continued rows of quoted text, so that they cannot be mistaken for other lines. */
const toScreenLine = (text: string): ScreenLine => ({
  text,
  continued: text.startsWith('  | ') ? '  + ' : '    ',
});
