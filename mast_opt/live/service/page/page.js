"use strict";
const REFRESH_MS = 2000;
const SHOWN = 100;
const WAITING = ["submitted", "queued", "held"];
const byId = (id) => document.getElementById(id);
let token = sessionStorage.getItem("token") || "";

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

async function get(path) {
  const answer = await fetch(path, { headers: token ? { Authorization: `Bearer ${token}` } : {} });
  if (answer.status === 401) {
    byId("sign-in").hidden = false;
    throw new Error("A token is needed.");
  }
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.detail);
  return body;
}

function span(since, now) {
  const seconds = Math.max(0, (now - since) / 1000);
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} d`;
}

function showRows(id, list, cellsOf) {
  byId(id).replaceChildren(...list.map((one) => {
    const row = element("tr");
    for (const cell of cellsOf(one)) row.append(element("td", cell, typeof cell === "number" ? "number" : ""));
    return row;
  }));
}

function serverCell(server) {
  const up = server.state === "up";
  const cell = element("div", undefined, up ? "cell" : "cell down");
  if (up && server.used) {
    cell.style.background = `rgba(var(--used), ${0.25 + (0.75 * server.used) / Math.max(1, server.gpus)})`;
  }
  cell.title = `${server.server}: ${server.used} of ${server.gpus} ${server.gpu_type}, ${server.state}`;
  cell.setAttribute("role", "img");
  cell.setAttribute("aria-label", cell.title);
  return cell;
}

function showFleet(servers) {
  const regions = new Map();
  for (const server of servers) {
    if (!regions.has(server.region)) regions.set(server.region, []);
    regions.get(server.region).push(server);
  }
  let allGpus = 0;
  let allUsed = 0;
  const boxes = [...regions].map(([region, list]) => {
    const up = list.filter((server) => server.state === "up");
    const gpus = up.reduce((sum, server) => sum + server.gpus, 0);
    const used = up.reduce((sum, server) => sum + server.used, 0);
    allGpus += gpus;
    allUsed += used;
    const box = element("div", undefined, "region");
    const cells = element("div", undefined, "cells");
    cells.append(...list.map(serverCell));
    box.append(element("div", `${region}: ${used} of ${gpus} GPUs`), cells);
    return box;
  });
  byId("fleet").replaceChildren(...boxes);
  byId("gpus").textContent = `${allUsed} of ${allGpus}`;
}

const WORDS = {
  Submitted: (e) => `${e.job} is submitted, tier ${e.spec.tier ?? 0}`,
  Placed: (e) => `${e.job} gets ${e.shares.length} server(s) in ${e.region}`
    + (e.victims ? `; ${e.victims.join(", ")} stop for it` : ""),
  Refused: (e) => `${e.job} waits: ${e.reason}`,
  StopAsked: (e) => `${e.job} is asked to stop: ${e.why}`,
  ServerDown: (e) => `${e.server} is out of service. ${e.why ?? ""}`,
  PlanAdopted: (e) => `plan ${e.plan} of ${e.path} is carried out from now on: ${(e.steps ?? []).length} steps`,
  SolveEnded: (e) => `${e.path}: ${e.status}${e.plan ? `, plan ${e.plan}` : ""}`,
  CopyAsked: (e) => `${e.dataset} is to be copied from ${e.source} to ${e.region}`,
  ReplicaDropped: (e) => `${e.dataset} is to be deleted in ${e.region}`,
  LeadTaken: (e) => `${e.holder} leads, epoch ${e.epoch}`,
};

function inWords(event) {
  const words = WORDS[event.event];
  if (words) return words(event);
  return [event.job ?? event.server ?? event.dataset ?? event.tenant, event.region].filter(Boolean).join(", ");
}

function carriedOut(plan) {
  if (!plan || !plan.progress) return plan ? "no" : "";
  const { steps, waiting, under_way: underWay, dropped } = plan.progress;
  return `${Math.max(0, steps - waiting - underWay - dropped)} of ${steps} steps; ${underWay} under way, ${dropped} dropped`;
}

function showSolves(solves, plans) {
  const planOf = new Map(plans.map((plan) => [plan.plan, plan]));
  showRows("solves", solves.slice(0, SHOWN), (solve) => [
    solve.solve, solve.path, solve.error ? `${solve.status}: ${solve.error}` : solve.status,
    solve.objective === null ? "" : solve.objective.toPrecision(5),
    solve.gap === null ? "" : `${(100 * solve.gap).toFixed(2)} %`,
    carriedOut(planOf.get(solve.plan)),
  ]);
}

async function draw() {
  try {
    const [fleet, jobs, log, solves, plans] = await Promise.all([
      get("/v1/fleet"), get("/v1/jobs?limit=1000"), get("/v1/events?limit=40"), get("/v1/solves"), get("/v1/plans"),
    ]);
    const now = Date.now();
    const waiting = jobs.jobs.filter((job) => WAITING.includes(job.state));
    const holding = jobs.jobs.filter((job) => !WAITING.includes(job.state));
    showFleet(fleet.servers);
    byId("waiting-count").textContent = waiting.length;
    byId("holding-count").textContent = holding.length;
    byId("last").textContent = log.last;
    showRows("waiting", waiting.slice(0, SHOWN), (job) => [
      job.job, job.tier, job.gpus, span(job.since_ms, now), job.why || "no place is free",
    ]);
    showRows("holding", holding.slice(0, SHOWN), (job) => [
      job.job, job.state, job.region, Object.keys(job.servers).join(", "), span(job.since_ms, now),
    ]);
    showSolves(solves.solves, plans.plans);
    showRows("events", log.events.reverse(), (event) => [
      `${span(event.at_ms, now)} ago`, event.event, inWords(event),
    ]);
    byId("problem").textContent = "";
    byId("sign-in").hidden = true;
  } catch (error) {
    byId("problem").textContent = error.message;
  }
}

byId("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  token = byId("token").value;
  sessionStorage.setItem("token", token);
  draw();
});
draw();
setInterval(draw, REFRESH_MS);
