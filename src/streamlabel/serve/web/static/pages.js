// Keys: an element with data-key="y" is clicked (or, if it is a field, focused) by y. And what htmx leaves to us.
"use strict";
(function () {
  function typing(at) {
    return at.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName);
  }
  document.addEventListener("keydown", function (event) {
    if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    var wanted = document.querySelector('[data-key="' + CSS.escape(event.key.toLowerCase()) + '"]');
    if (!wanted) return;
    event.preventDefault();
    if (typing(wanted)) wanted.focus();
    else wanted.click();
  });
  function say(message) {
    var notice = document.getElementById("notice");
    notice.textContent = "";
    if (!message) return;
    var said = document.createElement("div");
    said.textContent = message;
    notice.appendChild(said);
  }
  document.addEventListener("htmx:beforeRequest", function () { say(""); });
  document.addEventListener("htmx:beforeSwap", function (event) { // an error that is no page, as JSON or of a proxy
    var reply = event.detail.xhr, message = "The service answered with an error (" + reply.status + ").";
    if (!event.detail.isError || /id="error"/.test(reply.responseText)) return;
    try { message = JSON.parse(reply.responseText).error || message; } catch (_) { /* no JSON */ }
    event.detail.shouldSwap = false;
    say(message);
  });
  document.addEventListener("htmx:responseError", function (event) {
    var more = event.target.querySelector && event.target.querySelector("details[data-needed]");
    if (more) more.open = true;
  });
  document.addEventListener("htmx:sendError", function () { say("The service cannot be reached; is it running?"); });
  document.addEventListener("htmx:timeout", function () { say("The service takes too long; try again."); });
  document.addEventListener("htmx:afterSettle", function (event) {
    var focus = event.target.querySelector && event.target.querySelector("[data-focus]");
    if (focus) focus.focus({ preventScroll: true });
    if (focus && focus.getBoundingClientRect().top < 0) focus.scrollIntoView();
  });
})();
