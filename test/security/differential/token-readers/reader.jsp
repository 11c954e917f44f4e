<%@page import="java.util.*, java.util.regex.*" contentType="application/json;charset=UTF-8" trimDirectiveWhitespaces="true"%>
<%-- Answers with the refresh tokens that Tomcat finds in the request, as a JSON list. --%>
<%!
    static String fold(String name) { return name.toLowerCase(Locale.ROOT).replaceAll("[_-]", ""); }

    static String quote(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char one : text.toCharArray()) {
            if (one < 32 || one > 126 || one == '"' || one == '\\') out.append(String.format("\\u%04x", (int) one));
            else out.append(one);
        }
        return out.append('"').toString();
    }
%>
<%
    List<String> found = new ArrayList<>();
    String type = String.valueOf(request.getContentType()).toLowerCase(Locale.ROOT);
    if (type.contains("json")) {
        // Tomcat has no JSON parser, so the body is searched as text.
        StringBuilder body = new StringBuilder();
        for (int one; (one = request.getReader().read()) >= 0; ) body.append((char) one);
        Matcher matcher = Pattern.compile("\"([^\"]*)\"\\s*:\\s*\"([^\"\\\\]*)\"").matcher(body);
        while (matcher.find()) if (fold(matcher.group(1)).equals("refreshtoken")) found.add(quote(matcher.group(2)));
    }
    String grant = request.getParameter("grant_type");
    if (grant == null || grant.equals("refresh_token")) {
        for (Map.Entry<String, String[]> each : request.getParameterMap().entrySet())
            if (fold(each.getKey()).equals("refreshtoken")) for (String value : each.getValue()) found.add(quote(value));
    }
    out.print(found);
%>
