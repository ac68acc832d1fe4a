import type { Outcome } from './result.ts';
import type { ApprovalRequestedData, SessionEventData } from './session-event.ts';

/** Types of the events of sessions that are events of the fleet as well. */
export const FLEET_SESSION_EVENTS = [
  'session.queued',
  'session.opened',
  'session.adopted',
  'session.restarted',
  'session.lost',
  'session.closed',
  'command.completed',
  'approval.requested',
  'approval.answered',
] as const;
export type FleetSessionEventType = (typeof FLEET_SESSION_EVENTS)[number];

/** Types of the events of hosts. */
export const FLEET_HOST_EVENTS = [
  'host.up',
  'host.left',
  'host.unreachable',
  'host.draining',
  'host.drain-undone',
  'host.cordoned',
  'host.uncordoned',
] as const;
export type FleetHostEventType = (typeof FLEET_HOST_EVENTS)[number];

/** The `data` of an event of a session, by its type: that of the session's event, without what is large or sealed. */
export type FleetSessionEventData = Omit<SessionEventData, 'command.completed' | 'approval.requested'> & {
  /** The entry ended: a command, a step of a file operation, or a restart. */
  'command.completed': { outcome: Outcome };
  /** A command waits for the answer of a person. */
  'approval.requested': Omit<ApprovalRequestedData, 'reason'>;
};

/** Event of a session, as operators of the fleet see it: without output, Results and what is sealed. */
export type FleetSessionEvent = {
  [Type in FleetSessionEventType]: {
    /** Id of the event, unique within its session. `fleet.events({ after })` continues after it. */
    id: string;
    /** Time of the event; ISO 8601, by the clock of Redis. */
    at: string;
    /** What happened. */
    type: Type;
    /** Tenant of the session. */
    tenant: string;
    /** The session. */
    sessionId: string;
    /** The command, file operation or restart that the event is about, if it is about one. */
    commandId?: string;
    /** What the event reports. */
    data: FleetSessionEventData[Type];
  };
}[FleetSessionEventType];

/** A host came, left, or was asked something by an operator, as its heartbeat shows it to the reader. */
export interface FleetHostEvent {
  /** Time at which the reader saw it; ISO 8601. */
  at: string;
  /** What happened. */
  type: FleetHostEventType;
  /** The host. */
  hostId: string;
}

/**
 * Redis was out of reach for the reader. Events of this time follow, except those of sessions without any event since,
 * and those of hosts that are undone by now.
 */
export interface FleetGapEvent {
  /** Time at which Redis replied again; ISO 8601. */
  at: string;
  /** Tells this event from the others. */
  type: 'events.missed';
}

/** Something that happened in the fleet. */
export type FleetEvent = FleetSessionEvent | FleetHostEvent | FleetGapEvent;
